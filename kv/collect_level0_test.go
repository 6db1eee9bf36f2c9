package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values that one commit after the other overwrites are garbage in the blob files of their logs, to which nothing but
// level 0 refers: that is collected too, and writers are not held up for it.
func TestGarbageUnderLevel0IsCollected(t *testing.T) {
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, func(o *Options) {
			o.SeparateAtCommit, o.blobSize, o.MemtableSize = true, 0, 16<<20 // the least blob file has 4 MiB
		})
		rng := rand.New(rand.NewPCG(1, 1))
		value := randomBytes(rng, 256<<10)
		m := model{}
		for round := range 4 {
			for i := range 60 {
				k := fmt.Sprintf("key%05d", i%3)
				value[i]++
				m[k] = string(value)
				set(t, db, k, m[k])
			}
			require.NoError(t, db.Flush())
			db.settle()
			requireBlobs(t, db)
			over, _ := db.waste()
			require.LessOrEqual(t, over, 0.0, "round %d", round)
			require.False(t, db.due())
			require.Zero(t, db.Metrics().CompactionDebt)
		}
		require.Zero(t, db.counters.slowdowns.Load()+db.counters.stalls.Load())
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}
