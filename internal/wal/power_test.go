package wal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/property"
)

func TestDamageIsToldFromAPowerCut(t *testing.T) {
	var f capture
	w := NewWriter(&f, testID)
	for i := range 3000 {
		require.NoError(t, w.Append(record(i, 116)))
		if i == 1000 || i == 1001 {
			require.NoError(t, w.Sync())
		}
	}
	require.NoError(t, w.Flush())
	synced := f.synced
	require.Greater(t, synced, 3*blockSize)
	lost := func(page int) *Reader {
		log := bytes.Clone(f.Bytes())
		clear(log[page : page+4096])
		r := NewReader(content(log), "f", testID)
		_, err := readAll(r)
		require.ErrorIs(t, err, base.ErrCorruption)
		return r
	}
	var ce *base.CorruptionError
	r := lost(2 * blockSize)
	_, err := r.Next()
	require.ErrorAs(t, err, &ce)
	require.Less(t, ce.Offset, r.SyncedTo(), "a page that was synced")
	require.False(t, r.CrashExplains(err))
	r = lost(6 * blockSize)
	_, err = r.Next()
	require.ErrorAs(t, err, &ce)
	require.GreaterOrEqual(t, ce.Offset, r.SyncedTo(), "a page that was not")
	require.True(t, r.CrashExplains(err))
	require.EqualValues(t, synced, r.SyncedTo())
}

// TestPowerCuts writes a log and cuts the power: of the pages after the last
// sync some are lost. What was synced must be read, nothing else may be read
// but what follows it without a gap, and nothing may look like damage that a
// power cut cannot do.
func TestPowerCuts(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var f capture
		w := NewWriter(&f, testID)
		end := (*Writer).Close
		if rapid.Bool().Draw(t, "sync on close") {
			end = closeSynced
		}
		var records [][]byte
		acknowledged := 0
		for i := range rapid.IntRange(0, 50).Draw(t, "records") {
			records = append(records, record(i, rapid.SampledFrom([]int{0, 10, 116, 3000, 40000}).Draw(t, "size")))
			require.NoError(t, w.Append(records[i]))
			switch rapid.IntRange(0, 7).Draw(t, "then") {
			case 0, 1, 2:
				require.NoError(t, w.Flush())
			case 3:
				require.NoError(t, w.Sync())
				acknowledged = i + 1
			}
		}
		if rapid.Bool().Draw(t, "close") {
			require.NoError(t, end(w))
		}
		log := cutPower(f.Bytes(), f.synced, rapid.Uint64().Draw(t, "seed"))

		r := NewReader(content(log), "f", testID)
		got, err := readAll(r)
		require.GreaterOrEqual(t, len(got), acknowledged)
		requirePrefix(t, records, got)
		if !errors.Is(err, io.EOF) {
			require.True(t, r.CrashExplains(err), "%v", err)
		}
		if r.Clean() {
			require.Len(t, got, len(records))
		}
	})
}

// cutPower loses some of the pages after an offset, each with the same
// probability, and perhaps some of the length.
func cutPower(log []byte, synced int, seed uint64) []byte {
	const page = 4096
	rng := rand.New(rand.NewPCG(seed, 0))
	log = bytes.Clone(log)
	if rng.IntN(2) == 0 {
		log = log[:synced+rng.IntN(len(log)-synced+1)]
	}
	kept := rng.IntN(101)
	for at := synced; at < len(log); at = at - at%page + page {
		if rng.IntN(100) >= kept {
			clear(log[at:min(len(log), at-at%page+page)])
		}
	}
	return log
}
