package memtable

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/turns"
)

func kindsRecord(seq base.SeqNum) []byte {
	w := &batchrepr.Writer{}
	w.Add(base.KindSet, []byte("key"), []byte("value"))
	w.Add(base.KindSet, nil, nil)
	w.Add(base.KindDelete, []byte("gone"), nil)
	w.Add(base.KindRangeDelete, []byte("a"), rangedel.AppendEnd(nil, []byte("f")))
	w.Add(base.KindRangeDelete, nil, rangedel.AppendEnd(nil, nil))
	w.Add(base.KindSet, []byte{0xff, 0}, make([]byte, 130))
	w.Add(base.KindMerge, []byte("counter"), []byte("12345678"))
	w.Add(base.KindSetTTL, []byte("session"), base.AppendExpiry(nil, 7), []byte("value")...)
	return w.Seal(seq)
}

func TestApplyAddsEveryKind(t *testing.T) {
	record := kindsRecord(5)
	size, used, err := Measure(record)
	require.NoError(t, err)
	require.Equal(t, manifest.FeatureMerge|manifest.FeatureTTL, used)
	m := New(size + 1<<10)
	require.True(t, m.Empty())
	require.True(t, m.Reserve(size))
	require.NoError(t, m.Apply(record))
	m.Release(size)
	require.Equal(t, 6, m.Len())
	require.True(t, m.HasPoints())
	require.True(t, m.HasTombstones())
	value, trailer, ok := m.Get([]byte("key"), filterpolicy.Hash([]byte("key")), base.MaxSeqNum)
	require.True(t, ok)
	require.Equal(t, "value", string(value))
	require.Equal(t, base.MakeTrailer(5, base.KindSet), trailer)
	require.Equal(t, base.SeqNum(9), m.Tombstones().Cover([]byte("b"), base.MaxSeqNum))
	require.Zero(t, m.Tombstones().Cover([]byte("b"), 8), "of one batch only the newest counts")
}

// Range tombstones take room like entries, although none of the arena.
func TestRangeTombstonesFillAMemtable(t *testing.T) {
	const n = 100
	m := New(n * TombstoneSize(1, 5))
	seq := base.SeqNum(0)
	for {
		seq++
		w := &batchrepr.Writer{}
		w.Add(base.KindRangeDelete, []byte{0}, rangedel.AppendEnd(nil, binary.BigEndian.AppendUint32(nil, uint32(seq))))
		record := w.Seal(seq)
		size, _, err := Measure(record)
		require.NoError(t, err)
		if !m.Reserve(size) {
			break
		}
		require.NoError(t, m.Apply(record))
		m.Release(size)
	}
	require.InDelta(t, n, int(seq), 2)
	require.False(t, m.HasPoints())
	require.False(t, m.Empty())
	require.Equal(t, base.SeqNum(7), m.Tombstones().Cover([]byte{0}, 7))
}

// BenchmarkApply fills a memtable in records of n entries, with keys that ascend through all of them, that are sorted
// in each record, or that are in no order. It reports the processor time of an entry.
func BenchmarkApply(b *testing.B) {
	const entries = 300_000
	for _, order := range []string{"ascending", "sorted", "random"} {
		for _, n := range []int{10, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", order, n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				keys, total := make([]uint64, entries), 0
				for i := range keys {
					keys[i] = rng.Uint64()
				}
				if order == "ascending" {
					slices.Sort(keys)
				}
				var records [][]byte
				for part := range slices.Chunk(keys, n) {
					if order == "sorted" {
						slices.Sort(part)
					}
					w := &batchrepr.Writer{}
					for _, key := range part {
						w.Add(base.KindSet, binary.BigEndian.AppendUint64(nil, key), make([]byte, 16))
					}
					record := w.Seal(base.SeqNum(1 + len(records)*n))
					size, _, err := Measure(record)
					require.NoError(b, err)
					records, total = append(records, record), total+size
				}
				took := time.Duration(0)
				for b.Loop() {
					m := New(total)
					runtime.GC()
					start := turns.ProcessorTime()
					for _, record := range records {
						require.NoError(b, m.Apply(record))
					}
					took += turns.ProcessorTime() - start
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/entries, "cpu-ns/entry")
			})
		}
	}
}

// FuzzApply applies any record that can be read.
func FuzzApply(f *testing.F) {
	record := kindsRecord(77)
	f.Add(slices.Clone(record))
	f.Add(slices.Clone(record[:20]))
	f.Fuzz(func(t *testing.T, record []byte) {
		size, _, err := Measure(record)
		if err != nil {
			require.Error(t, New(1<<16).Apply(record))
			return
		}
		tombs := true
		for e, err := range batchrepr.All(record) {
			require.NoError(t, err)
			if e.Key.Kind() == base.KindRangeDelete {
				_, err := rangedel.DecodeEnd(e.Value)
				tombs = tombs && err == nil
			}
		}
		m := New(size + 4<<10)
		require.True(t, m.Reserve(size))
		err = m.Apply(record)
		require.Equal(t, tombs, err == nil, "%v", err)
	})
}
