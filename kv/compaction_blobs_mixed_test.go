package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// A mixedStore has few large values beside many small ones: at the average an entry has next to nothing in blob files.
type mixedStore struct {
	*DB
	t      *testing.T
	rng    *rand.Rand
	clock  *storetest.Clock
	merged atomic.Int64 // compactions for what blob files hold
}

const (
	mixedSmall = 20_000
	mixedLarge = 50
	mixedBlob  = 256 << 10 // of a blob file
)

func openMixed(t *testing.T, kind CompactionStyle, ttl time.Duration) *mixedStore {
	t.Helper()
	s := &mixedStore{t: t, rng: rand.New(rand.NewPCG(35, uint64(kind))), clock: &storetest.Clock{}}
	s.DB = collected(t, kind, func(o *Options) {
		o.SeparateFrom, o.harness.BlobSize, o.Clock = 4<<10, mixedBlob, s.clock.Time
		o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 1<<20, 256<<10, 256<<10
		o.Events.Compacted = func(i CompactionInfo) {
			switch i.Reason {
			case compaction.ReasonHidden, compaction.ReasonGarbage, compaction.ReasonDead:
				s.merged.Add(1)
			}
		}
	})
	for i := range mixedSmall {
		s.putSmall(i)
		if i%(mixedSmall/mixedLarge) == 0 {
			value := randomBytes(s.rng, 100<<10)
			if ttl > 0 {
				require.NoError(t, s.SetTTL(s.large(i*mixedLarge/mixedSmall), value, ttl, NoSync))
			} else {
				require.NoError(t, s.Set(s.large(i*mixedLarge/mixedSmall), value, NoSync))
			}
		}
	}
	require.NoError(t, s.Compact(t.Context(), nil, nil))
	s.settle()
	require.GreaterOrEqual(t, s.held(), uint64(mixedLarge*100<<10))
	return s
}

func (s *mixedStore) small(i int) []byte { return fmt.Appendf(nil, "key%08d-small", i) }
func (s *mixedStore) large(i int) []byte {
	return fmt.Appendf(nil, "key%08d-large", i*mixedSmall/mixedLarge)
}

func (s *mixedStore) putSmall(i int) {
	require.NoError(s.t, s.Set(s.small(i), randomBytes(s.rng, 100), NoSync))
}

// held returns the bytes of all records in blob files.
func (s *mixedStore) held() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.BlobTotals().RecordBytes
}

// rest flushes, and waits until nothing is left to do.
func (s *mixedStore) rest() {
	require.NoError(s.t, s.Flush(context.Background()))
	s.scheduleCompactions()
	s.settle()
}

// Large values that have expired, or were deleted or shortened, come back beside many small ones, without a Compact.
func TestLargeValuesComeBackBesideSmallOnes(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestFaultsWhileBlobFilesAreCollected has its goroutines")
	const gone = mixedLarge * 4 / 5
	for name, drop := range map[string]func(s *mixedStore){
		"expired": func(s *mixedStore) { s.clock.Advance(time.Hour) },
		"deleted": func(s *mixedStore) {
			for i := range gone {
				require.NoError(s.t, s.Delete(s.large(i), NoSync))
			}
		},
		"deleted beside writes": func(s *mixedStore) {
			for i := range gone {
				require.NoError(s.t, s.Delete(s.large(i), NoSync))
			}
			for range mixedSmall / 4 {
				s.putSmall(s.rng.IntN(mixedSmall))
			}
		},
		"deleted in a range": func(s *mixedStore) {
			require.NoError(s.t, s.DeleteRange(s.large(0), s.large(gone), NoSync))
		},
		"shortened": func(s *mixedStore) {
			for i := range gone {
				require.NoError(s.t, s.Set(s.large(i), []byte("short"), NoSync))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allKinds(t, func(t *testing.T, kind CompactionStyle) {
				ttl, needed := time.Duration(0), uint64((mixedLarge-gone)*101<<10)
				if name == "expired" {
					ttl, needed = time.Minute, 0
				}
				s := openMixed(t, kind, ttl)
				drop(s)
				s.rest()
				require.LessOrEqual(t, s.held(), needed*3/2+4*mixedBlob)
				require.False(t, s.due())
				require.NoError(t, s.Close())
			})
		})
	}
}

// A store that has nothing dead in blob files merges nothing for them, however many of its small values are
// overwritten, deleted and expire.
func TestNothingIsMergedForLargeValuesThatLive(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestFaultsWhileBlobFilesAreCollected has its goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		s := openMixed(t, kind, 24*time.Hour)
		s.merged.Store(0)
		for round := range 8 {
			for range mixedSmall / 8 {
				i := s.rng.IntN(mixedSmall)
				switch round % 3 {
				case 0:
					s.putSmall(i)
				case 1:
					require.NoError(t, s.Delete(s.small(i), NoSync))
				case 2:
					require.NoError(t, s.SetTTL(s.small(i), []byte("short"), time.Minute, NoSync))
				}
			}
			s.clock.Advance(2 * time.Minute)
			s.rest()
		}
		require.Zero(t, s.merged.Load())
		require.NoError(t, s.Close())
	})
}
