package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A stalledStore is one whose flushes wait at a gate, and whose memtables are full.
type stalledStore struct {
	t    *testing.T
	db   *DB
	fs   vfs.FS
	gate chan struct{}
	want storetest.Model

	noneLeft func()
}

func newStalledStore(t *testing.T) *stalledStore {
	s := &stalledStore{t: t, gate: make(chan struct{}), fs: vfs.NewMem(), want: storetest.Model{},
		noneLeft: leakCheck()}
	var err error
	s.db, err = Open("db", &Options{MemtableSize: 64 << 10, MaxMemtables: 2,
		harness: harness.Harness{FS: &vfstest.GateFS{FS: s.fs,
			Table: func() { <-s.gate }}}})
	require.NoError(t, err)
	for i := 0; !s.full(); i++ {
		k := fmt.Sprintf("fill%03d", i)
		s.want[k] = strings.Repeat("x", 2000)
		set(t, s.db, k, s.want[k])
	}
	return s
}

// full reports whether the next batch stalls.
func (s *stalledStore) full() bool {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if len(s.db.imms)+1 < s.db.opts.MaxMemtables {
		return false
	}
	const room = 4000
	fits := s.db.mem.Reserve(room)
	if fits {
		s.db.mem.Release(room)
	}
	return !fits
}

// commit starts to write a key.
func (s *stalledStore) commit(ctx context.Context, key string) (done chan error) {
	done = make(chan error, 1)
	b := s.db.NewBatch()
	require.NoError(s.t, b.Set([]byte(key), []byte(strings.Repeat("y", 3900))))
	go func() {
		err := b.CommitContext(ctx, NoSync)
		b.Reset() // it is ours again, whatever became of the write
		_ = b.Set([]byte("never"), []byte(strings.Repeat("z", 100)))
		done <- err
	}()
	return done
}

// queued waits until n requests stand behind those that are being committed.
func (s *stalledStore) queued(n int) {
	storetest.Until(func() bool {
		leading, waiting := s.db.commits.Queue()
		return leading && waiting == n
	})
}

// finish lets flushes go on, and checks what the store holds: now, and when it is
// opened again.
func (s *stalledStore) finish(written ...string) {
	for _, k := range written {
		s.want[k] = strings.Repeat("y", 3900)
	}
	requireContents(s.t, s.want, s.db)
	require.NoError(s.t, s.db.Close())
	s.noneLeft()
	db, err := Open("db", &Options{harness: harness.Harness{FS: s.fs}})
	require.NoError(s.t, err)
	requireContents(s.t, s.want, db)
	require.NoError(s.t, db.Close())
}

func TestAStalledWriteIsGivenUpWithItsContext(t *testing.T) {
	s := newStalledStore(t)
	cause := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	plain := t.Context()

	leader := s.commit(ctx, "leader")
	s.queued(0)
	// They queue behind it, in this order.
	ctxB, cancelB := context.WithCancel(plain)
	b := s.commit(ctxB, "b")
	s.queued(1)
	c := s.commit(context.Background(), "c")
	s.queued(2)
	ctxD, cancelD := context.WithCancel(plain)
	d := s.commit(ctxD, "d")
	s.queued(3)
	ctxE, cancelE := context.WithCancel(plain)
	e := s.commit(ctxE, "e")
	s.queued(4)

	cancelE() // in the queue
	require.ErrorIs(t, <-e, context.Canceled)
	s.queued(3)

	cancel(cause) // it leads
	err := <-leader
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)

	s.queued(0) // b leads c and d now, and waits
	cancelD()   // in a group
	require.ErrorIs(t, <-d, context.Canceled)
	cancelB()
	require.ErrorIs(t, <-b, context.Canceled)

	f := s.commit(plain, "f")
	close(s.gate)
	require.NoError(t, <-c)
	require.NoError(t, <-f)
	s.finish("c", "f")
}

func TestAWriteThatIsToLeadCanBeGivenUp(t *testing.T) {
	s := newStalledStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // whether it is told to lead or sees its context first is a race
		first, cancelFirst := context.WithCancel(t.Context())
		a := s.commit(first, "a")
		s.queued(0)
		b := s.commit(ctx, "b")
		cancelFirst()
		require.ErrorIs(t, <-a, context.Canceled)
		require.ErrorIs(t, <-b, context.Canceled)
		storetest.Until(func() bool {
			leading, _ := s.db.commits.Queue()
			return !leading
		})
	}
	close(s.gate)
	s.finish()
}

func TestContextsThatEndManyWritesAtRandom(t *testing.T) {
	noneLeft := leakCheck()
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{MemtableSize: 64 << 10, MaxMemtables: 2, L0CompactionThreshold: 2,
		harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	const writers, writes = 8, 300 / storetest.RaceFactor
	results := make(chan storetest.Model)
	for w := range writers {
		go func() {
			want := storetest.Model{}
			for i := range writes {
				ctx, cancel := context.WithCancel(context.Background())
				if i%3 == 0 {
					go cancel()
				}
				k, v := fmt.Sprintf("key%d/%d", w, i%50), fmt.Sprint(i, strings.Repeat("x", i%7*200))
				b := db.NewBatch()
				_ = b.Set([]byte(k), []byte(v))
				_ = b.Set([]byte(k+"twin"), []byte(v))
				if err := b.CommitContext(ctx, []*WriteOptions{Sync, NoSync, Async}[i%3]); err == nil {
					want[k], want[k+"twin"] = v, v
				} else if !errors.Is(err, context.Canceled) {
					panic(err)
				}
				cancel()
			}
			results <- want
		}()
	}
	want := storetest.Model{}
	for range writers {
		maps.Copy(want, <-results)
	}
	requireContents(t, want, db)
	require.NoError(t, db.Close())
	noneLeft()
	db, err = Open("db", &Options{harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	requireContents(t, want, db)
	require.NoError(t, db.Close())
}

func TestFlushEndsWithItsContext(t *testing.T) {
	s := newStalledStore(t)
	leader := s.commit(t.Context(), "leader")
	s.queued(0)
	flush := func() (context.CancelFunc, chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.db.Flush(ctx) }()
		return cancel, done
	}
	cancel, queued := flush() // behind a write that waits
	s.queued(1)
	cancel()
	require.ErrorIs(t, <-queued, context.Canceled)
	s.gate <- struct{}{}
	require.NoError(t, <-leader)

	cancel, stalled := flush() // for room to rotate
	cancel()
	require.ErrorIs(t, <-stalled, context.Canceled)
	close(s.gate)
	require.NoError(t, s.db.Flush(t.Context()))
	s.finish("leader")
}

func TestCloseEndsWaits(t *testing.T) {
	s := newStalledStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stalled := s.commit(ctx, "stalled")
	s.queued(0)
	behind := s.commit(ctx, "behind")
	s.queued(1)
	compacted := make(chan error, 1)
	go func() { compacted <- s.db.Compact(ctx, nil, nil) }()
	s.queued(2)
	closed := make(chan error, 1)
	go func() { closed <- s.db.Close() }()
	for _, done := range []chan error{stalled, behind, compacted} {
		require.ErrorIs(t, <-done, ErrClosed)
	}
	close(s.gate)
	require.NoError(t, <-closed)
	s.noneLeft()
}

// Backup and Ingest wait for the flush before them, and Ingest for its turn, no longer
// than their contexts last.
func TestABackupAndAnIngestAreGivenUpWhileTheyWait(t *testing.T) {
	s := newStalledStore(t)
	leader := s.commit(t.Context(), "leader")
	s.queued(0)
	path := ingestFile(t, s.fs, "file", nil, "never=ingested")
	for name, call := range map[string]func(context.Context) error{
		"backup": func(ctx context.Context) error {
			_, err := s.db.Backup(ctx, io.Discard, BackupMark{})
			return err
		},
		"ingest": func(ctx context.Context) error { // a copy would wait at the gate
			return s.db.Ingest(ctx, []string{path}, &IngestOptions{Link: true})
		},
		"checkpoint": func(ctx context.Context) error { return s.db.Checkpoint(ctx, "copy") },
	} {
		cause := errors.New(name)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		s.queued(1)
		cancel(cause)
		err := <-done
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, cause, name)
	}
	close(s.gate)
	require.NoError(t, <-leader)
	s.finish("leader")
}
