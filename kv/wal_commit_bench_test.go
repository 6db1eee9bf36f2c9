package kv

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkSet measures single writes of random keys with values of 100 bytes. Async
// pays for an insertion into a large memtable, some ten dependent cache misses;
// NoSync for a write call on top. Flushes and compactions run beside it and are part
// of what it costs.
func BenchmarkSet(b *testing.B) {
	run := func(name string, o *WriteOptions) {
		b.Run(name, func(b *testing.B) {
			db := openDir(b, b.TempDir(), &Options{MemtableSize: 16 << 20, MaxConcurrentCompactions: 1})
			defer db.Close()
			key, value := make([]byte, 16), make([]byte, 100)
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				binary.BigEndian.PutUint64(key, r.Uint64())
				require.NoError(b, db.Set(key, value, o))
			}
		})
	}
	run("async", Async)
	run("nosync", NoSync)
}
