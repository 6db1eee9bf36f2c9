package kv

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/sstable"
)

// Readers of a mapped store go on while its files are replaced and removed under
// them, and see every key.
func TestMemoryMapUnderCompactions(t *testing.T) {
	t.Parallel()
	const n = 2000
	for _, c := range []sstable.Compression{sstable.NoCompression, sstable.Snappy} {
		db, err := Open(t.TempDir(), &Options{
			MemoryMap: true, Compression: c, MemtableSize: 64 << 10, TargetFileSize: 64 << 10,
			BaseLevelSize: 128 << 10, CacheSize: 256 << 10,
		})
		require.NoError(t, err)
		key := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15) }
		write := func(round int) {
			b := db.NewBatch()
			for i := range n {
				require.NoError(t, b.Set(key(i), fmt.Appendf(nil, "%d:%d:%0100d", i, round, i)))
			}
			require.NoError(t, b.Commit(NoSync))
		}
		write(0)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for g := range 2 {
			wg.Go(func() {
				var dst []byte
				for i := g; !stop.Load(); i++ {
					k := i % n
					var err error
					dst, err = db.AppendGet(dst[:0], key(k))
					var got, round int
					if _, scanErr := fmt.Sscanf(string(dst), "%d:%d:", &got, &round); err != nil || scanErr != nil ||
						got != k {
						t.Errorf("key %d: %q, %v", k, dst, err)
						return
					}
					if i%500 == 0 {
						it, err := db.NewIter(nil)
						seen := 0
						for ok := it.First(); ok; ok = it.Next() {
							seen++
						}
						if err != nil || it.Error() != nil || it.Close() != nil || seen != n {
							t.Errorf("%d keys, %v, %v", seen, err, it.Error())
							return
						}
					}
				}
			})
		}
		for round := range scale.Fewer(4, 2) {
			write(round)
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
		stop.Store(true)
		wg.Wait()
		require.NoError(t, db.Close())
	}
}
