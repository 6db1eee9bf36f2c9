package kv

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Scans of 50 entries where not all is settled: from 20,000 keys of which some have many
// versions (a Zipf distribution), in a memtable or in files of level 0. The limits:
// settled, what the entries' bytes cost to copy and decode; otherwise a comparison of keys for each
// entry and level of the merge's tree, and a search for each key with many versions.
func BenchmarkScanUnsettled(b *testing.B) {
	const n, updates = 20_000, 60_000
	for _, c := range []struct {
		name    string
		updates int
		flushes int // of the updates
	}{
		{"settled", 0, 0},
		{"memtable", updates, 0},
		{"level0=8", updates, 8},
	} {
		db, err := Open(b.TempDir(), &Options{MemtableSize: 64 << 20, L0CompactionThreshold: 20})
		require.NoError(b, err)
		var key []byte
		value := make([]byte, 100)
		for i := range n {
			key = readBenchKey(key, i)
			require.NoError(b, db.Set(key, value, Async))
		}
		require.NoError(b, db.Flush())
		require.NoError(b, db.Compact(nil, nil))
		rng := rand.New(rand.NewPCG(1, 2))
		zipf := rand.NewZipf(rng, 1.2, 4, n-1)
		for i := range c.updates {
			key = readBenchKey(key, int(zipf.Uint64()))
			require.NoError(b, db.Set(key, value, Async))
			if c.flushes > 0 && i%(c.updates/c.flushes) == c.updates/c.flushes-1 {
				require.NoError(b, db.Flush())
			}
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				key = readBenchKey(key, int(zipf.Uint64()))
				it, err := db.NewIter(nil)
				if err != nil {
					b.Fatal(err)
				}
				for i, ok := 0, it.SeekGE(key); ok && i < 50; i, ok = i+1, it.Next() {
					value = append(value[:0], it.Value()...)
				}
				if err := it.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		require.NoError(b, db.Close())
	}
}
