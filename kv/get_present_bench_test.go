package kv

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/sstable"
)

// readBenchKeys are enough that blocks and filters fit into no processor's own cache.
const readBenchKeys = 200_000

// readBenchStore returns a settled store of readBenchKeys keys with values of 100
// bytes, half compressible.
func readBenchStore(b *testing.B, o Options) *DB {
	b.Helper()
	o.MemtableSize = 16 << 20
	db, err := Open(b.TempDir(), &o)
	require.NoError(b, err)
	batch := db.NewBatch()
	var key []byte
	for i := range readBenchKeys {
		key = readBenchKey(key, i)
		value := fmt.Appendf(nil, "%x%x%x%060d", key, key[3:], key[9:], 0)[:100]
		require.NoError(b, batch.Set(key, value))
		if i%1000 == 999 {
			require.NoError(b, batch.Commit(NoSync))
			batch.Reset()
		}
	}
	require.NoError(b, db.Flush(b.Context()))
	require.NoError(b, db.Compact(b.Context(), nil, nil))
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return db
}

// The limits: cached, some six cache misses that depend on one another (a line of the
// filter, the index, the slot, the block's tail, the entry), 120 to 300 ns each; from
// the file, a pread of 4 KiB (1 µs) and the decoding of a block (1 to 2 µs).
func BenchmarkRead(b *testing.B) {
	for _, store := range []struct {
		name string
		o    Options
	}{
		{"cached", Options{}},
		{"cache=2MiB", Options{CacheSize: 2 << 20}},
		{"mapped", Options{CacheSize: 2 << 20, Compression: sstable.NoCompression, MemoryMap: true}},
	} {
		db := readBenchStore(b, store.o)
		var key, value []byte
		step := 0
		next := func() int { step = (step + 77_773) % readBenchKeys; return step }
		b.Run(store.name+"/existing", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				key = readBenchKey(key, next())
				var err error
				if value, err = db.AppendGet(value[:0], key); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(store.name+"/absent", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				key = readBenchKey(key, readBenchKeys+next())
				if ok, err := db.Has(key); ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
