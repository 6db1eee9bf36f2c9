package commit

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A testStore is the least that a pipeline needs.
type testStore struct {
	Pipeline
	fs      vfs.FS
	mem     *memtable.Memtable
	visible atomic.Uint64
	flushed uint64
	enabled manifest.Features
	failing sync.Mutex
	failed  error
}

func newTestStore(t *testing.T) *testStore {
	t.Helper()
	s := &testStore{fs: vfs.NewMem(), mem: memtable.New(8 << 20)}
	s.Attach(Store{
		Visible: &s.visible, GroupBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		MakeRoom: func(ctx context.Context, arena, _ int, _ *memtable.Order) (*memtable.Memtable, error) {
			if ctx.Err() != nil {
				return nil, base.ErrContextEnded
			}
			require.True(t, s.mem.Reserve(arena))
			return s.mem, nil
		},
		Enable:    func(f manifest.Features) error { s.enabled |= f; return nil },
		FlushedTo: func() uint64 { return s.flushed },
		Fail: func(_ string, _ bool, err error) error {
			s.failing.Lock()
			defer s.failing.Unlock()
			s.failed = err
			return err
		},
	})
	s.visible.Store(10)
	s.Start(10, s.newLog(t, 1), 0)
	return s
}

func (s *testStore) newLog(t *testing.T, num uint64) *wal.Writer {
	t.Helper()
	f, err := s.fs.Create(string(rune('0' + num)))
	require.NoError(t, err)
	return wal.NewWriter(f, num)
}

func newBatch(kind base.Kind, key string) *Batch {
	b := &Batch{Arena: memtable.EntrySize(len(key), 0)}
	b.Add(kind, []byte(key), nil)
	return b
}

// records returns the records of a log that was closed.
func (s *testStore) records(t *testing.T, num uint64) (n int) {
	t.Helper()
	name := string(rune('0' + num))
	f, err := s.fs.Open(name)
	require.NoError(t, err)
	defer f.Close()
	r := wal.NewReader(f, name, num)
	for {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			require.True(t, r.Clean())
			return n
		} else {
			require.NoError(t, err)
		}
		n++
	}
}

func TestCommitsAreNumberedInOrder(t *testing.T) {
	s := newTestStore(t)
	var wg sync.WaitGroup
	const writers, each = 4, 50
	for range writers {
		wg.Go(func() {
			for i := range each {
				if err := s.Commit(context.Background(), newBatch(base.KindSet, "k"), nil, Level(i%3)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 10+writers*each, s.visible.Load())
	require.EqualValues(t, writers*each, s.Writes.Load())
	require.Equal(t, writers*each, s.mem.Len())
	require.NoError(t, s.Commit(context.Background(), newBatch(base.KindMerge, "k"), nil, Written))
	require.Equal(t, manifest.FeatureMerge, s.enabled)
	require.NoError(t, s.Close(func() bool { return false }))
	require.Equal(t, writers*each+1, s.records(t, 1))
	err := s.Commit(context.Background(), newBatch(base.KindSet, "k"), nil, Synced)
	require.ErrorIs(t, err, base.ErrClosed)
	require.NoError(t, s.failed)
}

// Writers that were in one group are in one again if they go on writing, though each could lead at once. What they
// wrote is not kept alive.
func TestWritersOfAGroupShareTheNext(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a leader that does not yield is alone
	s := newTestStore(t)
	ctx := context.Background()
	const rounds, writers = 100, 4
	shared := 0
	for range rounds {
		before := s.Groups.Load()
		var wg sync.WaitGroup
		require.NoError(t, s.Exclusive(ctx, func() error {
			for range writers {
				wg.Go(func() {
					for range 2 {
						if err := s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Written); err != nil {
							t.Error(err)
						}
					}
				})
			}
			queued := func() bool { _, n := s.Queue(); return n == writers }
			require.Eventually(t, queued, time.Minute, 10*time.Microsecond)
			return nil
		}))
		wg.Wait()
		if s.Groups.Load()-before < 1+writers {
			shared++
		}
	}
	require.Greater(t, shared, rounds/2, "the scheduler may choose the one that yields")
	require.NoError(t, s.Exclusive(ctx, func() error {
		require.NotEmpty(t, s.readers)
		for _, r := range s.readers {
			require.Zero(t, r)
		}
		return nil
	}))
}

// A commit that has to be durable syncs the logs that ended before, and those whose
// writes are in tables are closed without a sync.
func TestSyncReachesEndedLogs(t *testing.T) {
	s := newTestStore(t)
	ctx := context.Background()
	for num := uint64(2); num <= 4; num++ {
		require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Written))
		require.NoError(t, s.Exclusive(ctx, func() error {
			require.NoError(t, s.Log().End())
			s.SwitchLog(s.newLog(t, num))
			return nil
		}))
	}
	require.Len(t, s.logs.ended, 3)
	s.flushed = 2
	require.NoError(t, s.Sync())
	require.Empty(t, s.logs.ended)
	require.EqualValues(t, 1, s.Syncs.Load())
	require.Equal(t, uint64(4), s.Log().ID())
	require.Equal(t, 1, s.records(t, 3))
}

// Who only wants a sync writes nothing, needs no room, and reaches all logs.
func TestSyncVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the timer of Buffered commits stands still
		s := newTestStore(t)
		ctx := context.Background()
		room := s.store.MakeRoom
		s.store.MakeRoom = func(context.Context, int, int, *memtable.Order) (*memtable.Memtable, error) {
			panic("nobody writes")
		}
		require.NoError(t, s.SyncVisible(ctx))
		require.Zero(t, s.Syncs.Load())
		require.True(t, s.Log().Empty())
		s.store.MakeRoom = room
		for num := uint64(2); num <= 3; num++ {
			require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered))
			require.NoError(t, s.Exclusive(ctx, func() error {
				require.NoError(t, s.Log().End())
				s.SwitchLog(s.newLog(t, num))
				return nil
			}))
		}
		require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered))
		require.Positive(t, s.Log().Buffered())
		groups := s.Groups.Load()
		require.NoError(t, s.SyncVisible(ctx))
		require.Empty(t, s.logs.ended)
		require.Zero(t, s.Log().Buffered())
		require.True(t, s.Log().Synced())
		require.EqualValues(t, 1, s.Syncs.Load())
		require.Equal(t, groups, s.Groups.Load())
		require.Equal(t, s.visible.Load(), s.durable.Load())
		require.NoError(t, s.Close(func() bool { return false }))
		require.NoError(t, s.SyncVisible(ctx), "all is durable")
		s.visible.Add(1)
		require.ErrorIs(t, s.SyncVisible(ctx), base.ErrClosed)
	})
}

// syncedTo returns what a log proves to be durable.
func (s *testStore) syncedTo(t *testing.T, num uint64) int64 {
	t.Helper()
	name := string(rune('0' + num))
	f, err := s.fs.Open(name)
	require.NoError(t, err)
	defer f.Close()
	r := wal.NewReader(f, name, num)
	for err == nil {
		_, err = r.Next()
	}
	require.ErrorIs(t, err, io.EOF)
	return r.SyncedTo()
}

// A log says that writes are durable without another write, once.
func TestMarkSynced(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	ctx := context.Background()
	require.NoError(t, s.MarkSynced(ctx))
	require.True(t, s.Log().Empty())
	for _, level := range []Level{Synced, Written, Buffered} {
		require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, level))
		end := s.Log().Size()
		syncs := s.Syncs.Load()
		require.NoError(t, s.MarkSynced(ctx))
		require.Equal(t, end, s.syncedTo(t, 1))
		if level == Synced {
			require.Equal(t, syncs, s.Syncs.Load())
		}
		end = s.Log().Size()
		require.NoError(t, s.MarkSynced(ctx))
		require.Equal(t, end, s.Log().Size())
	}
	broken := errors.New("broken")
	s.Log().Break(broken)
	require.ErrorIs(t, s.MarkSynced(ctx), broken)
	require.ErrorIs(t, s.failed, broken)
	require.NoError(t, s.Abandon())
	require.ErrorIs(t, s.MarkSynced(ctx), base.ErrClosed)
}

// A reader in another process takes what a mark covers for history. So a mark does not cover writes that are synced and
// not visible yet: if the logs break in between, they never will be.
func TestMarksDoNotCoverWhatMayFail(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	ctx := context.Background()
	synced, release := make(chan struct{}), make(chan struct{})
	s.store.SyncTook = func(time.Duration) { close(synced); <-release }
	failed := make(chan error)
	go func() { failed <- s.Commit(ctx, newBatch(base.KindSet, "a"), nil, Synced) }()
	<-synced
	require.EqualValues(t, 10, s.visible.Load())
	require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "b"), nil, Written))
	require.Zero(t, s.syncedTo(t, 1))
	close(release)
	require.NoError(t, <-failed)
	s.store.SyncTook = nil
	require.NoError(t, s.MarkSynced(ctx))
	require.Positive(t, s.syncedTo(t, 1))
}

// Syncs that are in a group with batches, transactions that conflict, and requests that are given
// up change nothing for them.
func TestSyncsInAGroupWithWriters(t *testing.T) {
	s := newTestStore(t)
	ctx := context.Background()
	require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "first"), nil, Written))
	given, cancel := context.WithCancel(ctx)
	results := map[string]chan error{}
	start := func(name string, do func() error) {
		done := make(chan error, 1)
		results[name] = done
		go func() { done <- do() }()
		queued := func() bool { _, n := s.Queue(); return n == len(results) }
		require.Eventually(t, queued, time.Minute, time.Millisecond)
	}
	require.NoError(t, s.Exclusive(ctx, func() error {
		start("sync", func() error { return s.SyncVisible(ctx) })
		start("batch", func() error { return s.Commit(ctx, newBatch(base.KindSet, "a"), nil, Synced) })
		start("given up", func() error { return s.SyncVisible(given) })
		start("conflict", func() error {
			return s.Commit(ctx, newBatch(base.KindSet, "b"), refuse{}, Synced)
		})
		start("last", func() error { return s.SyncVisible(ctx) })
		cancel()
		require.ErrorIs(t, <-results["given up"], context.Canceled)
		return nil
	}))
	for _, name := range []string{"sync", "batch", "last"} {
		require.NoError(t, <-results[name], name)
	}
	require.ErrorIs(t, <-results["conflict"], errRefused)
	require.EqualValues(t, 12, s.visible.Load())
	require.EqualValues(t, 1, s.Syncs.Load())
	require.NoError(t, s.Close(func() bool { return false }))
	require.Equal(t, 2, s.records(t, 1))
}

var errRefused = errors.New("refused")

// A refuse is reads that conflict with a write before them.
type refuse struct{}

func (refuse) Validate(base.SeqNum) error          { return nil }
func (refuse) ValidateIn(*memtable.Memtable) error { return errRefused }

// What Buffered commits have left may be in an ended log when its time comes: the next one is left empty.
func TestALogWithoutRecordsIsNotFlushedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the timer of Buffered commits stands still
		s := newTestStore(t)
		ctx := context.Background()
		require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered))
		require.NoError(t, s.Exclusive(ctx, func() error {
			require.NoError(t, s.Log().End())
			s.SwitchLog(s.newLog(t, 2))
			return nil
		}))
		s.flushLog()
		require.True(t, s.Log().Empty())
		require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered))
		s.flushLog()
		require.Zero(t, s.Log().Buffered())
	})
}

// The timer for what Buffered commits leave may have its turn after the logs are closed.
func TestTheTimerOfAPipelineThatWasAbandoned(t *testing.T) {
	s := newTestStore(t)
	ctx := context.Background()
	require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered))
	require.NoError(t, s.Abandon())
	s.flushLog()
	require.ErrorIs(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered), base.ErrClosed)
}

func TestABrokenLogBreaksAllAndIsReplaced(t *testing.T) {
	s := newTestStore(t)
	ctx, broken := context.Background(), errors.New("broken")
	require.NoError(t, s.Exclusive(ctx, func() error {
		require.ErrorIs(t, s.Fail("test", broken), broken)
		return nil
	}))
	require.ErrorIs(t, s.failed, broken)
	require.ErrorIs(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered), broken)
	require.EqualValues(t, 10, s.visible.Load())
	require.NoError(t, s.Exclusive(ctx, func() error {
		s.ReplaceLogs(s.newLog(t, 2))
		return nil
	}))
	require.NoError(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Buffered))
	require.EqualValues(t, 12, s.visible.Load(), "a number is given out once")
	require.NoError(t, s.Close(func() bool { return false }))
}

// Whoever waits can leave while it waits, and whoever leads while it makes room.
func TestCommitsAreAbandonedWithTheirContext(t *testing.T) {
	s := newTestStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	held, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.Exclusive(context.Background(), func() error { close(held); <-goOn; return nil })
	}()
	<-held
	waits := make(chan error)
	go func() { waits <- s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Synced) }()
	for _, waiting := s.Queue(); waiting == 0; _, waiting = s.Queue() {
	}
	cancel()
	require.ErrorIs(t, <-waits, context.Canceled)
	close(goOn)
	require.NoError(t, <-done)
	require.ErrorIs(t, s.Commit(ctx, newBatch(base.KindSet, "k"), nil, Synced), context.Canceled)
	require.EqualValues(t, 10, s.visible.Load())
}

var errConflict = errors.New("conflict")

// A testReads conflicts with batches of its group that write a key, or with the store.
type testReads struct {
	key   string
	stale bool
}

func (r testReads) Validate(base.SeqNum) error {
	if r.stale {
		return errConflict
	}
	return nil
}

func (r testReads) ValidateIn(m *memtable.Memtable) error {
	it := m.NewIter()
	for ok := it.First(); ok; ok = it.Next() {
		if string(it.Key().User) == r.key {
			return errConflict
		}
	}
	return nil
}

// A group loses requests that were abandoned, and transactions that conflict with a
// write that stays in the group before them; the group of the leader stays as it is.
func TestAdmit(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		letter := func() string { return string(rune('a' + rng.IntN(6))) }
		var group, want, refused []*request
		size, wantSize, written := 0, 0, map[string]bool{}
		for i := range 1 + rng.IntN(8) {
			key := letter()
			b := newBatch(base.KindSet, key)
			r := &request{batch: b, size: b.Size(), arena: b.Arena}
			conflicts := false
			if rng.IntN(2) == 0 {
				reads := testReads{letter(), rng.IntN(5) == 0}
				r.reads, conflicts = reads, reads.stale || written[reads.key]
			}
			if rng.IntN(2) == 0 {
				r.done = make(chan struct{})
				if i > 0 && rng.IntN(3) == 0 { // the leader does not abandon its own request
					r.state.Store(abandoned)
				}
			}
			group, size = append(group, r), size+r.size
			switch {
			case r.state.Load() == abandoned:
			case conflicts:
				refused = append(refused, r)
			default:
				want, wantSize, written[key] = append(want, r), wantSize+r.size, true
			}
		}
		before := slices.Clone(group)
		left, leftSize := (&Pipeline{seq: 100}).admit(group, size)
		require.Equal(t, before, group)
		require.True(t, slices.Equal(want, left), "seed %d", seed)
		require.Equal(t, wantSize, leftSize)
		for _, r := range group {
			require.Equal(t, slices.Contains(refused, r), r.err != nil, "seed %d", seed)
			require.True(t, r.done == nil || r.state.Load() != waiting, "seed %d", seed)
		}
	}
}

// copyValues has no large values: batches go as they are.
type copyValues struct{}

func (copyValues) Has(*batchrepr.Writer) bool { return true }

func (copyValues) Put(b *batchrepr.Writer, _ base.SeqNum, _ *wal.Writer, _ *memtable.Memtable,
	into *batchrepr.Writer) error {
	into.Reset()
	into.Append(b)
	return nil
}

func (copyValues) Flush() error { return nil }

// A batch with large values may have many that are not large. What of them is copied beside handles is not kept.
func TestLongBatchesWithHandlesAreNotKept(t *testing.T) {
	s := newTestStore(t)
	s.store.Values = copyValues{}
	kept := 0
	for i := range 20 {
		value := make([]byte, 100)
		if i%2 == 0 {
			value = make([]byte, 2*maxRetainedHandles)
		}
		b := &Batch{Arena: memtable.EntrySize(1, len(value))}
		b.Add(base.KindSet, []byte("k"), value)
		require.NoError(t, s.Commit(context.Background(), b, nil, Written))
		r := s.newRequest(nil)
		if r.withHandles != nil {
			require.LessOrEqual(t, r.withHandles.Cap(), maxRetainedHandles)
			kept++
		}
		s.requests.Put(r)
	}
	require.Positive(t, kept, "short ones are")
}
