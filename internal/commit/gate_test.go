package commit

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A yieldingFile lets others run while it syncs, and fails if the test says so.
type yieldingFile struct {
	vfs.WriteFile
	syncing *atomic.Int32
	fails   *atomic.Bool
}

var errSync = errors.New("sync failed")

func (f yieldingFile) Sync() error {
	if f.syncing.Add(1) != 1 {
		return errors.New("two syncs at a time")
	}
	defer f.syncing.Add(-1)
	for range 20 {
		runtime.Gosched()
	}
	if f.fails.Load() {
		return errSync
	}
	return f.WriteFile.Sync()
}

// idle fails the test if somebody is left behind.
func (s *testStore) idle(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.leading && !s.gate.shut
	}, time.Minute, time.Millisecond, "what Buffered commits left is being flushed")
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.waiting)
	require.Empty(t, s.gate.waiting)
	require.Zero(t, s.gate.inside)
	require.False(t, s.syncs.running)
	require.Empty(t, s.syncs.group)
}

// mix commits at all levels, some with contexts that end and with transactions that conflict,
// and runs functions and switches logs, from many goroutines. It returns the errors that
// are no context's and no conflict's.
func (s *testStore) mix(t *testing.T, file func() vfs.WriteFile, seed uint64) error {
	var all sync.WaitGroup
	var alone atomic.Int32
	var num atomic.Uint64
	num.Store(s.Log().ID())
	errs := make([]error, 12)
	for w := range errs {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for range 60 {
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(3) == 0 {
					go func() { runtime.Gosched(); cancel() }()
				}
				var err error
				switch level := Level(rng.IntN(3)); rng.IntN(12) {
				case 0:
					err = s.Exclusive(ctx, func() error {
						if alone.Add(1) != 1 || s.syncs.running {
							return errors.New("a function is not alone")
						}
						if rng.IntN(2) == 0 {
							if err := s.Log().End(); err != nil {
								return s.Fail("test", err)
							}
							s.SwitchLog(wal.NewWriter(file(), num.Add(1)))
						}
						alone.Add(-1)
						return nil
					})
				case 1:
					reads := testReads{stale: rng.IntN(2) == 0}
					err = s.Commit(ctx, newBatch(base.KindSet, "k"), reads, level)
				default:
					err = s.Commit(ctx, newBatch(base.KindSet, "k"), nil, level)
				}
				if !errors.Is(err, context.Canceled) && !errors.Is(err, errConflict) {
					errs[w] = errors.Join(errs[w], err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	s.idle(t)
	return errors.Join(errs...)
}

// Whatever comes together, nobody is left behind, and the gate is open in the end. With
// syncs that fail, what was not visible at that time never is.
func TestNobodyIsLeftBehind(t *testing.T) {
	for seed := range uint64(30) {
		s := newTestStore(t)
		var syncing atomic.Int32
		var fails atomic.Bool
		file := func() vfs.WriteFile {
			f, err := s.fs.Create("log")
			if err != nil {
				t.Error(err)
			}
			return yieldingFile{f, &syncing, &fails}
		}
		s.SwitchLog(wal.NewWriter(file(), 2))
		require.NoError(t, s.mix(t, file, seed), "seed %d", seed)
		require.EqualValues(t, s.seq, s.visible.Load(), "everything is visible")

		fails.Store(true)
		err := s.mix(t, file, seed)
		require.ErrorIs(t, err, errSync)
		visible := s.visible.Load()
		require.LessOrEqual(t, visible, uint64(s.seq))
		fails.Store(false)
		require.Error(t, s.mix(t, file, seed), "the logs stay broken")
		require.Equal(t, visible, s.visible.Load())
		require.NoError(t, s.Exclusive(t.Context(), func() error { // the timer of Buffered commits may be at work
			s.ReplaceLogs(wal.NewWriter(file(), 1000))
			return nil
		}))
		require.NoError(t, s.mix(t, file, seed))
		require.EqualValues(t, s.seq, s.visible.Load())
		require.NoError(t, s.Close(func() bool { return false }))
	}
}
