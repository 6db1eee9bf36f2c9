package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// Short values hide long ones as long ones do: what they overwrite comes back though they need no blob files.
func TestShortValuesOverLongOnes(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestFaultsWhileBlobFilesAreCollected has its goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, nil)
		rng := rand.New(rand.NewPCG(31, uint64(kind)))
		m := storetest.Model{}
		overwrite(t, db, m, rng, 3000, 500)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		db.settle()
		for i := range 500 {
			if i%10 > 0 {
				k := fmt.Sprintf("key%05d", i)
				set(t, db, k, "short")
				m[k] = "short"
			}
		}
		require.NoError(t, db.Flush(t.Context()))
		db.settle()
		require.False(t, db.due())
		require.Zero(t, db.Metrics().CompactionDebt)
		needed := 0
		for _, v := range m {
			if len(v) >= db.opts.SeparateFrom {
				needed += len(v)
			}
		}
		db.mu.Lock()
		held := db.current.BlobTotals().RecordBytes
		db.mu.Unlock()
		require.Less(t, int(held), needed*3/2+4*int(db.opts.harness.BlobSize))
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// A store that rests wakes when so many of its values have expired that their space is due.
func TestValuesThatExpireWhileAStoreRests(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		clock := &storetest.Clock{}
		db := collected(t, kind, func(o *Options) { o.Clock, o.MemtableSize = clock.Time, 1<<20 })
		rng := rand.New(rand.NewPCG(32, uint64(kind)))
		for i := range 1000 {
			ttl := time.Duration(100+rng.IntN(800)) * time.Second
			require.NoError(t, db.SetTTL(fmt.Appendf(nil, "key%05d", i), randomBytes(rng, 500), ttl, NoSync))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		db.settle()
		woken := 0
		for {
			db.mu.Lock()
			v, wait := db.current, db.compactionInput(db.current).UntilDead()
			space := db.compactionInput(v).BlobSpace()
			db.mu.Unlock()
			if wait == 0 {
				break
			}
			require.LessOrEqual(t, space.Over(), 0.0)
			require.GreaterOrEqual(t, wait, time.Second)
			clock.Advance(wait)
			db.scheduleCompactions() // as the timer does
			db.settle()
			woken++
		}
		require.Greater(t, woken, 5)
		require.Less(t, woken, 200)
		db.mu.Lock()
		live := db.current.BlobTotals().LiveRecords
		db.mu.Unlock()
		require.Less(t, live, uint64(100))
		require.NoError(t, db.Close())
	})
}

// Short values that have expired, or are overwritten, take no blob file: nobody waits for the space of long ones beside
// them, and none of these is copied for it.
func TestShortValuesThatExpireBesideLongOnes(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestFaultsWhileBlobFilesAreCollected has its goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		clock := &storetest.Clock{}
		db := collected(t, kind, func(o *Options) { o.Clock = clock.Time })
		rng := rand.New(rand.NewPCG(33, uint64(kind)))
		for i := range 1000 {
			set(t, db, fmt.Sprintf("key%05d", i), string(randomBytes(rng, 2000)))
		}
		for i := range 20000 {
			ttl := time.Hour
			if i%20 < 9 {
				ttl = time.Minute
			}
			require.NoError(t, db.SetTTL(fmt.Appendf(nil, "short%05d", i), []byte("a"), ttl, NoSync))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		db.settle()
		clock.Advance(2 * time.Minute)
		db.scheduleCompactions()
		db.settle()
		db.mu.Lock()
		s, pressure := db.compactionInput(db.current).BlobSpace(), db.load().BlobPressure()
		db.mu.Unlock()
		require.Less(t, s.Dead, s.MaxHidden)
		require.Zero(t, pressure)
		require.False(t, db.due())
		require.NoError(t, db.Close())
	})
}

// What has expired is given back of a store too that has nothing below level 0.
func TestValuesThatExpireInLevel0(t *testing.T) {
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		clock := &storetest.Clock{}
		db := collected(t, kind, func(o *Options) { o.Clock, o.MemtableSize = clock.Time, 1<<20 })
		rng := rand.New(rand.NewPCG(34, uint64(kind)))
		for i := range 1000 {
			ttl := time.Hour
			if i%20 < 9 {
				ttl = time.Minute
			}
			require.NoError(t, db.SetTTL(fmt.Appendf(nil, "key%05d", i), randomBytes(rng, 500), ttl, NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		require.Equal(t, 1, db.Metrics().Levels[0].Runs)
		clock.Advance(2 * time.Minute)
		db.scheduleCompactions()
		db.settle()
		over, _ := db.waste()
		require.LessOrEqual(t, over, 0.0)
		require.False(t, db.due())
		require.NoError(t, db.Close())
	})
}

// Versions that a snapshot has kept are given back when it is closed, also if there is a newer one, to which they are
// nothing.
func TestOverwrittenValuesUnderANewerSnapshot(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, func(o *Options) { o.BlobSpace = 1.1 })
		rng := rand.New(rand.NewPCG(35, uint64(kind)))
		const keys, size = 1000, 500
		for i := range keys {
			set(t, db, fmt.Sprintf("key%05d", i), string(randomBytes(rng, size)))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		needed := float64(db.Metrics().Blobs.LiveBytes)
		first := db.NewSnapshot()
		for i := 0; i < keys; i += 4 {
			set(t, db, fmt.Sprintf("key%05d", i), string(randomBytes(rng, size)))
		}
		require.NoError(t, db.Flush(t.Context()))
		db.settle()
		require.Greater(t, float64(db.Metrics().Blobs.LiveBytes), 1.2*needed, "the snapshot keeps them")
		second := db.NewSnapshot()
		require.NoError(t, first.Close())
		db.settle()
		db.mu.Lock()
		held, batch := float64(db.current.BlobTotals().RecordBytes), db.compactionInput(db.current).BlobSpace().Batch
		db.mu.Unlock()
		require.LessOrEqual(t, held, 1.1*needed+batch)
		require.NoError(t, second.Close())
		require.NoError(t, db.Close())
	})
}
