package kv

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/sstable"
)

// bigValues is a settled store of keys with values of 4 KiB, each in a block of its own, that do not compress.
func bigValues(b *testing.B, o Options) (db *DB, keys int) {
	b.Helper()
	const n = 5000
	db, err := Open(b.TempDir(), &o)
	require.NoError(b, err)
	value := make([]byte, 4<<10)
	rng := rand.New(rand.NewPCG(1, 2))
	var key []byte
	for i := range n {
		key = readBenchKey(key, i)
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		require.NoError(b, db.Set(key, value, Async))
	}
	require.NoError(b, db.Compact(b.Context(), nil, nil))
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	return db, n
}

var bigValueStores = []struct {
	name string
	o    Options
}{
	{"cached", Options{CacheSize: 64 << 20}},
	{"cache=2MiB", Options{CacheSize: 2 << 20}},
	{"cache=2MiB,uncompressed", Options{CacheSize: 2 << 20, Compression: sstable.NoCompression}},
	{"mapped", Options{CacheSize: 2 << 20, Compression: sstable.NoCompression, MemoryMap: true}},
}

// Scans of all keys with values of 4 KiB, per key: with the values, which the caller does not look at, and
// without.
func BenchmarkKeysOnly(b *testing.B) {
	for _, store := range bigValueStores {
		db, _ := bigValues(b, store.o)
		for _, c := range []struct {
			name string
			o    IterOptions
		}{{"all", IterOptions{}}, {"keys", IterOptions{KeysOnly: true}}} {
			for _, dir := range []string{"forward", "backward"} {
				b.Run(store.name+"/"+dir+"/"+c.name, func(b *testing.B) {
					it, err := db.NewIter(&c.o)
					require.NoError(b, err)
					for b.Loop() {
						if dir == "forward" {
							if (!it.Valid() || !it.Next()) && !it.First() {
								b.Fatal(it.Error())
							}
						} else if (!it.Valid() || !it.Prev()) && !it.Last() {
							b.Fatal(it.Error())
						}
					}
					require.NoError(b, it.Close())
				})
			}
		}
	}
}

// Lookups of values of 4 KiB, with a copy and without.
func BenchmarkGetSize(b *testing.B) {
	for _, store := range bigValueStores {
		db, n := bigValues(b, store.o)
		var key, dst []byte
		i := 0
		next := func() {
			i = (i + 7919) % n
			key = readBenchKey(key, i)
		}
		b.Run(store.name+"/Get", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next()
				if _, err := db.Get(key); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(store.name+"/AppendGet", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next()
				var err error
				if dst, err = db.AppendGet(dst[:0], key); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(store.name+"/GetSize", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next()
				if size, err := db.GetSize(key); err != nil || size != 4<<10 {
					b.Fatal(err, size)
				}
			}
		})
	}
}
