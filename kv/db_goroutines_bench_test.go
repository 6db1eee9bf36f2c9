package kv

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	sift "github.com/siftkv/siftkv/internal/vfs"
)

// BenchmarkGoroutines measures how what stores do holds up with many goroutines that do it:
// nothing is shared by reads but the state, and by writes but the pipeline and the memtable.
// With -cpu 1,2,4,8,16 it shows that processors beyond those of the machine do no harm. A
// sync takes 1 ms here, and is shared: syncs/op says by how many.
func BenchmarkGoroutines(b *testing.B) {
	const keys = 100_000
	key := func(dst []byte, n uint64) []byte {
		return binary.BigEndian.AppendUint64(dst, n%keys*0x9e3779b97f4a7c15)
	}
	value := make([]byte, 100)
	get := func(db *DB, rng *rand.Rand) error {
		_, err := db.Has(key(make([]byte, 0, 8), rng.Uint64()))
		return err
	}
	set := func(o *WriteOptions) func(*DB, *rand.Rand) error {
		return func(db *DB, rng *rand.Rand) error { return db.Set(key(make([]byte, 0, 8), rng.Uint64()), value, o) }
	}
	for _, kind := range []struct {
		name string
		do   func(*DB, *rand.Rand) error
	}{
		{"reads", get}, {"NoSync", set(NoSync)}, {"Sync", set(Sync)},
		{"mixed", func(db *DB, rng *rand.Rand) error {
			switch n := rng.IntN(100); {
			case n < 80:
				return get(db, rng)
			case n < 99:
				return set(NoSync)(db, rng)
			}
			return set(Sync)(db, rng)
		}},
	} {
		for _, n := range []int{1, 8, 64, 1024} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				fs := slowSyncs{sift.OS, time.Millisecond}
				db := openDir(b, b.TempDir(), &Options{harness: harness.Harness{FS: fs}, MemtableSize: 64 << 20})
				batch := db.NewBatch()
				for i := range uint64(keys) {
					_ = batch.Set(key(nil, i), value) // Commit returns the error
				}
				require.NoError(b, batch.Commit(NoSync))
				before := db.Metrics().WALSyncs
				b.ResetTimer()
				var all sync.WaitGroup
				for g := range n {
					all.Go(func() {
						rng := rand.New(rand.NewPCG(uint64(g), 1))
						for i := g; i < b.N; i += n {
							if err := kind.do(db, rng); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				b.StopTimer()
				b.ReportMetric(float64(db.Metrics().WALSyncs-before)/float64(b.N), "syncs/op")
				require.NoError(b, db.Close())
			})
		}
	}
}
