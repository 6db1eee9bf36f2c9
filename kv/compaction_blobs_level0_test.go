package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// Values that one commit after the other overwrites are garbage in the blob files of their logs, to which nothing but
// level 0 refers: that is collected too, and writers are not held up for it.
func TestGarbageUnderLevel0IsCollected(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, func(o *Options) {
			o.SeparateAtCommit, o.harness.BlobSize, o.MemtableSize = true, 0, 16<<20 // the least blob file has 4 MiB
		})
		rng := rand.New(rand.NewPCG(1, 1))
		value := randomBytes(rng, 256<<10)
		m := storetest.Model{}
		for round := range 4 {
			for i := range 60 {
				k := fmt.Sprintf("key%05d", i%3)
				value[i]++
				m[k] = string(value)
				set(t, db, k, m[k])
			}
			require.NoError(t, db.Flush(t.Context()))
			db.settle()
			requireBlobs(t, db)
			over, _ := db.waste()
			require.LessOrEqual(t, over, 0.0, "round %d", round)
			require.False(t, db.due())
			require.Zero(t, db.Metrics().CompactionDebt)
		}
		require.Zero(t, db.counters.Slowdowns.Load()+db.counters.Stalls.Load())
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// Nobody is slowed down for space that cannot be had: a table that is left alone keeps what may be hidden hidden.
func TestWritersAreNotSlowedDownForWhatCannotBeHad(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestGarbageOfBlobFilesIsCollected has the goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, func(o *Options) { o.BlobSpace = 1.1 })
		rng := rand.New(rand.NewPCG(4, 4))
		m := storetest.Model{}
		overwrite(t, db, m, rng, 2000, 500)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		db.settle()
		db.mu.Lock()
		for _, tab := range db.current.Levels[lastLevel].Tables() {
			tab.Quarantined = true
			db.compactions.Quarantined = append(db.compactions.Quarantined, tab)
		}
		db.mu.Unlock()
		most := 0.0
		for range 12 {
			overwrite(t, db, m, rng, 400, 500)
			db.settle()
			db.mu.Lock()
			pressure, slows := db.load().BlobPressure(), db.load().Pressure(nil)
			db.mu.Unlock()
			most = max(most, pressure)
			require.Zero(t, slows, "nothing runs")
		}
		require.Greater(t, most, 0.1)
		require.NoError(t, db.Close())
	})
}
