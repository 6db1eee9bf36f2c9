package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/turns"
	"github.com/siftkv/siftkv/kv"
)

// BenchmarkTinyBatches commits batches of one small write without a sync, in goroutines, in SiftKV and in Pebble in
// turns. Pebble's batches stay in the process for a moment, as those of kv.Async do. Each has a store of its own, since
// a larger memtable takes longer to search.
func BenchmarkTinyBatches(b *testing.B) {
	const writes = 100_000
	other, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: 64 << 20})
	require.NoError(b, err)
	sift := func(o *kv.WriteOptions) func(key, value []byte) error {
		store, err := kv.Open(b.TempDir(), &kv.Options{MemtableSize: 64 << 20})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, store.Close()) })
		return func(key, value []byte) error {
			batch := store.NewBatch()
			_ = batch.Set(key, value)
			return batch.Commit(o)
		}
	}
	noSync, async := sift(kv.NoSync), sift(kv.Async)
	for _, goroutines := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) {
			var cpu, clock turns.Table
			round := uint64(0)
			for b.Loop() {
				round++
				for _, s := range []struct {
					name   string
					commit func(key, value []byte) error
				}{
					{"NoSync", noSync}, {"Async", async},
					{"Pebble", func(key, value []byte) error {
						batch := other.NewBatch()
						_ = batch.Set(key, value, nil)
						err := batch.Commit(pebble.NoSync)
						_ = batch.Close()
						return err
					}},
				} {
					began := time.Now()
					cpu.Measure(s.name, "processor time", writes, func() {
						var all sync.WaitGroup
						for g := range goroutines {
							all.Go(func() {
								rng := rand.New(rand.NewPCG(round, uint64(g)))
								key, value := make([]byte, 8), make([]byte, 8)
								for range writes / goroutines {
									binary.BigEndian.PutUint64(key, rng.Uint64())
									if err := s.commit(key, value); err != nil {
										b.Error(err)
									}
								}
							})
						}
						all.Wait()
						clock.Add(s.name, "by the clock", float64(time.Since(began))/writes)
					})
				}
			}
			cpu.Print(b, "NoSync", "Async", "Pebble")
			clock.Print(b, "NoSync", "Async", "Pebble")
		})
	}
	require.NoError(b, other.Close())
}
