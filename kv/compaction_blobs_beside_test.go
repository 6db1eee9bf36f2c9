package kv

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// Writers beside a compaction that a caller asked for, which keeps collection from all of the store, are slowed down
// when blob files are over their limit, and do not wait for its end.
func TestACompactSlowsOverwritesDown(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, nil)
		rng, m := rand.New(rand.NewPCG(67, uint64(kind))), storetest.Model{}
		overwrite(t, db, m, rng, 600, 200)
		db.settle()
		ctx := context.Background()
		c, err := db.beginManual(ctx, func(in *compaction.Input) *compaction.Job {
			return in.MergeRange(nil, nil, nil)
		})
		require.NoError(t, err)
		require.NotNil(t, c)
		slows := func() (bool, bool) {
			db.mu.Lock()
			defer db.mu.Unlock()
			return db.load().BlobPressure() >= 1, db.makesBlobSpace()
		}
		for round := 0; ; round++ {
			slowed, waits := slows()
			require.False(t, waits, "there is nothing to wait for")
			if slowed {
				break
			}
			require.Less(t, round, 30, "no limit holds beside the compaction")
			overwrite(t, db, m, rng, 60, 200)
		}
		before := db.Metrics().Slowdowns
		overwrite(t, db, m, rng, 60, 200)
		require.Greater(t, db.Metrics().Slowdowns, before)
		require.NoError(t, db.compact(ctx, c))
		db.reschedule(func() { db.end(c) })
		db.settle()
		over, _ := db.waste()
		require.LessOrEqual(t, over, 0.0)
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// Writers that need not ask for room hear of a compaction that a caller asked for when it begins, and when it ends.
func TestACompactThatBeginsIsNotedForWriters(t *testing.T) {
	t.Parallel()
	db := collected(t, Leveled, func(o *Options) { o.L0SlowdownThreshold, o.L0StopThreshold = 100, 200 })
	rng, m := rand.New(rand.NewPCG(68, 1)), storetest.Model{}
	overwrite(t, db, m, rng, 600, 200)
	db.settle()
	db.holdCompactions(true)
	pressed := func() bool {
		db.mu.Lock()
		defer db.mu.Unlock()
		return db.load().BlobPressure() > 0
	}
	for round := 0; !pressed(); round++ {
		require.Less(t, round, 30)
		overwrite(t, db, m, rng, 60, 200)
	}
	db.waitForBackground()
	require.True(t, db.room.Load() != nil, "nothing runs that writers could wait for")
	ctx := context.Background()
	c, err := db.beginManual(ctx, func(in *compaction.Input) *compaction.Job {
		return in.MergeRange(nil, nil, nil)
	})
	require.NoError(t, err)
	require.True(t, db.room.Load() == nil)
	db.reschedule(func() { db.end(c) })
	require.True(t, db.room.Load() != nil)
	require.NoError(t, db.Close())
}

// Compact copies values batch by batch: beside the files it takes the space of one batch, and not that of the store.
func TestCompactTakesTheSpaceOfABatch(t *testing.T) {
	scale.OneGoroutine(t, "a count of bytes")
	t.Parallel()
	for _, kind := range []CompactionStyle{Leveled, Tiered, LazyLeveled} {
		disk := vfstest.NewBoundedFS(0)
		s := openLargeOn(t, kind, 1.4, disk)
		for i := range 2 * s.keys {
			if s.put(s.rng.IntN(s.keys), largeValue, 0); i%60 == 59 {
				s.rest()
			}
		}
		s.rest()
		s.mu.Lock()
		space, tables := s.compactionInput(s.current).BlobSpace(), int64(0)
		for n := range s.current.Levels {
			tables += s.current.Levels[n].Bytes
		}
		s.mu.Unlock()
		require.Greater(t, space.Garbage, space.Needed/8, "there is much to copy")
		before := disk.ResetPeak()
		require.NoError(t, s.Compact(t.Context(), nil, nil))
		batch := int64(max(space.Batch, float64(tables)))
		require.LessOrEqual(t, disk.Peak()-before, batch+2*tables+2*s.opts.harness.BlobSize, "of %d bytes", before)
		s.settle()
		require.Less(t, s.held(), 1.06*s.needed())
		requireBlobs(t, s.DB)
		require.NoError(t, s.Close())
	}
}

// Overwrites that never rest, beside a Compact that copies values all the time, keep to the limit of space: writers
// wait for it as they do for collections.
func TestOverwritesBesideTheCopyingOfCompactKeepToTheLimit(t *testing.T) {
	t.Parallel()
	kinds := []CompactionStyle{Tiered, Leveled, LazyLeveled}
	if storetest.RaceFactor > 1 {
		kinds = kinds[:1] // the others have the same goroutines
	}
	for _, kind := range kinds {
		s := openLarge(t, kind, 1.3)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			var err error
			for err == nil && ctx.Err() == nil {
				err = s.collectRange(context.Background(), nil, nil)
			}
			done <- err
		}()
		s.overwriteWithin(t, 1.3)
		stop()
		require.NoError(t, <-done)
		s.rest()
		s.requireLimit()
		require.NoError(t, s.Close())
	}
}
