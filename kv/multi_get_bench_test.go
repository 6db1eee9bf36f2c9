package kv

import (
	"testing"
)

// The limits are those of BenchmarkRead, but that the cache misses of the keys of one
// call overlap, and that blocks are read on as many processors as are free. Each
// operation looks up 32 keys, in one call or in 32.
func BenchmarkMultiGet(b *testing.B) {
	for _, store := range []struct {
		name string
		o    Options
	}{
		{"cached", Options{}},
		{"cache=2MiB", Options{CacheSize: 2 << 20}},
	} {
		db := readBenchStore(b, store.o)
		step := 0
		keys := make([][]byte, 32)
		for _, lookup := range []struct {
			name  string
			first int
		}{{"existing", 0}, {"absent", readBenchKeys}} {
			next := func() {
				for i := range keys {
					step = (step + 77_773) % readBenchKeys
					keys[i] = readBenchKey(keys[i], lookup.first+step)
				}
			}
			b.Run(store.name+"/"+lookup.name+"/together", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					next()
					if _, err := db.MultiGet(keys); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(store.name+"/"+lookup.name+"/apart", func(b *testing.B) {
				b.ReportAllocs()
				values := make([][]byte, len(keys))
				for b.Loop() {
					next()
					for i := range keys {
						values[i], _ = db.Get(keys[i])
					}
				}
			})
		}
	}
}
