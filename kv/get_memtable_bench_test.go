package kv_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// BenchmarkGetBesideMemtable looks keys up in a store that is being written: half a
// million keys in one settled level, all blocks in the cache, and 60,000 entries in the
// memtable, which every lookup passes first.
func BenchmarkGetBesideMemtable(b *testing.B) {
	db, err := kv.Open("bench", &kv.Options{InMemory: true, MemtableSize: 16 << 20, CacheSize: 256 << 20})
	require.NoError(b, err)
	defer func() { require.NoError(b, db.Close()) }()
	key := func(dst []byte, i uint64) []byte {
		return binary.BigEndian.AppendUint64(append(dst, "12345678"...), i*0x9e3779b97f4a7c15)
	}
	const settled, recent = 500_000, 60_000
	load := func(from, to uint64) {
		value := make([]byte, 100)
		for i := from; i < to; {
			batch := db.NewBatch()
			for range min(100, to-i) {
				require.NoError(b, batch.Set(key(nil, i), value))
				i++
			}
			require.NoError(b, batch.Commit(kv.Async))
		}
	}
	load(0, settled)
	require.NoError(b, db.Compact(b.Context(), nil, nil))
	load(settled, settled+recent)

	for _, c := range []struct {
		name    string
		from, n uint64
		present bool
	}{
		{"in=memtable", settled, recent, true},
		{"in=table", 0, settled, true},
		{"in=nothing", 1 << 40, settled, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			var k, value [128]byte
			get := func() error {
				_, err := db.AppendGet(value[:0], key(k[:0], c.from+rng.Uint64N(c.n)))
				return err
			}
			for range 2 * c.n { // so that what is read is in the cache
				_ = get()
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := get(); c.present != (err == nil) || !c.present && !errors.Is(err, kv.ErrNotFound) {
					b.Fatal(err)
				}
			}
		})
	}
}
