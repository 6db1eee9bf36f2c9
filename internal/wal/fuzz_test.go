package wal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReader feeds any bytes to a reader, and any sequence of fragments.
func FuzzReader(f *testing.F) {
	log := sampleLogs(f)[0].log
	f.Add([]byte{})
	f.Add(log)
	f.Add(log[:40])
	f.Add(log[:len(log)-200])
	f.Add(append(bytes.Clone(log[:300]), make([]byte, 500)...))
	for _, at := range []int{3, 9, 33, 37, 38, 70, 100, 400} {
		flipped := bytes.Clone(log)
		flipped[at] ^= 0x55
		f.Add(flipped)
	}
	f.Add([]byte{0, 1, 2, 3, 2, 3, 1, 4, 0, 5})
	f.Add([]byte{1, 0xfe, 3, 0, 0xff, 1, 3, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		checkBounds(t, data)
		log := appendFileHeader(nil, testID)
		for _, b := range data[:min(len(data), 2000)] {
			if b >= 0xf0 {
				log = append(log, b) // damage
				continue
			}
			typ, payload := fragmentType(b%6)+typeFull, bytes.Repeat([]byte{b}, int(b/6))
			if typ >= typeSynced {
				payload = make([]byte, markSize)
			}
			log = appendFragment(log, testID, int64(len(log)), typ, payload)
		}
		checkBounds(t, log)
	})
}

// checkBounds reads and skips to the end: there must be one, and no more bytes
// may be returned or allocated than there are.
func checkBounds(t *testing.T, log []byte) {
	t.Helper()
	r := NewReader(content(log), "f", testID)
	total, rounds := int64(0), 0
	for {
		records, err := readAll(r)
		for _, rec := range records {
			total += headerSize + int64(len(rec))
		}
		require.Error(t, err)
		if !r.Skip() {
			break
		}
		rounds++
	}
	require.LessOrEqual(t, total+r.Skipped(), int64(len(log)))
	require.LessOrEqual(t, rounds, len(log)/headerSize)
	require.LessOrEqual(t, r.SyncedTo(), int64(len(log)))
	require.LessOrEqual(t, cap(r.record), 2*len(log)+64)
}

// FuzzDamage overwrites a part of a log with any bytes. No record may be read
// that was not written.
func FuzzDamage(f *testing.F) {
	log, records := smallLog(f)
	f.Add(0, []byte("SIFTWAL"))
	f.Add(40, []byte{1, 2, 3})
	f.Add(blockSize-3, []byte{9, 9, 9, 9, 9, 9})
	f.Add(500, append([]byte{}, log[900:1100]...))
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		if at < 0 || at > len(log) {
			return
		}
		damaged := bytes.Clone(log)
		copy(damaged[at:], with)
		r := NewReader(content(damaged), "f", testID)
		next := 0
		for {
			got, err := readAll(r)
			for _, rec := range got {
				for next < len(records) && !bytes.Equal(rec, records[next]) {
					next++
				}
				require.Less(t, next, len(records), "a record that was not written, or out of order")
				next++
			}
			require.Error(t, err)
			if !r.Skip() {
				break
			}
		}
		require.Equal(t, bytes.Equal(log, damaged), r.Clean() && r.Skipped() == 0)
	})
}
