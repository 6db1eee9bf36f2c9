package kv

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// Where few values lie apart, here and there among many that do not, a collection takes a few tables at a time all the
// same.
func TestCollectionTakesAFewTablesAtATime(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of tables; TestFaultsWhileBlobFilesAreCollected has its goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		var most, steps atomic.Int64
		var taken atomic.Int64
		var asked atomic.Bool // Compact takes all at once
		db := collected(t, kind, func(o *Options) {
			o.BlobSpace = 1.1
			o.Events.Compacted = func(i CompactionInfo) {
				if i.Reason == compaction.ReasonGarbage && !asked.Load() {
					most.Store(max(most.Load(), i.InputBytes))
					steps.Add(1)
					taken.Add(i.InputBytes)
				}
			}
		})
		rng := rand.New(rand.NewPCG(21, uint64(kind)))
		m := storetest.Model{}
		put := func(i int) {
			k, v := fmt.Sprintf("key%05d", i), fmt.Sprintf("%070d", rng.Uint32())
			if i%50 == 0 {
				v = strings.Repeat(v, 12)
			}
			m[k] = v
			set(t, db, k, v)
		}
		for i := range 20_000 {
			put(i)
		}
		for range 3 {
			asked.Store(true)
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			db.settle()
			asked.Store(false)
			for i := range 20_000 / 50 {
				if i%3 > 0 {
					put(i * 50)
				}
			}
			require.NoError(t, db.Flush(t.Context()))
			db.settle()
		}
		db.mu.Lock()
		bound := db.opts.compaction().MaxGCTables(db.current)
		total := db.current.Levels[lastLevel].Bytes
		db.mu.Unlock()
		t.Log(steps.Load(), most.Load(), bound, total, taken.Load())
		require.Positive(t, steps.Load())
		require.Greater(t, total, 4*bound)
		require.LessOrEqual(t, most.Load(), 2*bound+128<<10, "and one table")
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}
