package kv

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A store for which a budget is too small gives back what it had by then: the directory of its disk cache too.
func TestBudgetRefusesAStoreWithADiskCache(t *testing.T) {
	b, disk := NewMemoryBudget(4<<20), vfs.NewMem()
	var stores []*DB
	for range 8 {
		stores = append(stores, openDir(t, "db", &Options{MemoryBudget: b, InMemory: true}))
	}
	var log bytes.Buffer
	o := &Options{MemoryBudget: b, harness: harness.Harness{FS: disk}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Objects: &objects.Config{Store: objstore.NewMem(), CacheSize: 64 << 20}}
	_, err := Open("cache", o)
	require.ErrorIs(t, err, ErrMemoryBudget)
	require.NoError(t, stores[0].Close())
	again := openDir(t, "cache", o)
	require.NotContains(t, log.String(), "nothing is cached on disk")
	for _, db := range append(stores[1:], again) {
		require.NoError(t, db.Close())
	}
	requireNothingCharged(t, b)
}

// A hurried store ends a context when it has put so many objects.
type hurried struct {
	objstore.Store
	left atomic.Int64 // several goroutines put
	end  func()
}

func (s *hurried) put(err error) error {
	if s.left.Add(-1) == 0 {
		s.end()
	}
	return err
}

func (s *hurried) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	return s.put(s.Store.Put(ctx, key, r, size))
}

func (s *hurried) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return s.put(s.Store.PutIfAbsent(ctx, key, body))
}

// A store whose context ends as it is opened, after the last request as well, leaves nothing behind.
func TestBudgetOfAStoreWhoseContextEndsAsItOpens(t *testing.T) {
	for _, there := range []bool{false, true} {
		b := NewMemoryBudget(16 << 20)
		failed := 0
		for puts := int64(1); ; puts++ {
			mem := objstore.NewMem()
			if there {
				db := openObjects(t, mem, nil)
				set(t, db, "key", "value")
				require.NoError(t, db.Close())
			}
			ctx, cancel := context.WithCancel(t.Context())
			s := &hurried{Store: mem, end: cancel}
			s.left.Store(puts)
			db, err := OpenContext(ctx, "", &Options{MemoryBudget: b, Objects: &objects.Config{Store: s}})
			cancel()
			if err == nil {
				require.NoError(t, db.Close())
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			requireNothingCharged(t, b)
			failed++
		}
		require.Positive(t, failed)
		requireNothingCharged(t, b)
	}
}

// A view that cannot be refreshed is charged for what it shows, and for none of its attempts.
func TestBudgetOfAViewThatCannotBeRefreshed(t *testing.T) {
	b, disk := NewMemoryBudget(16<<20), vfs.NewMem()
	flushes := make(chan struct{})
	db := openDir(t, "db", &Options{harness: harness.Harness{FS: &vfstest.GateFS{FS: disk,
		Table: func() { <-flushes }}}})
	for _, k := range []string{"a", "b"} { // in two logs
		set(t, db, k, "1")
		db.mu.Lock() // nobody leads: the test does
		require.NoError(t, db.rotateTo(0, nil))
		db.mu.Unlock()
	}
	reads := &vfstest.FaultFS{FS: disk}
	view, err := OpenReadOnly("db", &Options{harness: harness.Harness{FS: reads}, MemoryBudget: b})
	require.NoError(t, err)
	shown := func() (bytes int64) {
		for _, m := range view.imms {
			bytes += m.Bytes()
		}
		return bytes
	}
	failed := 0
	for last := 1; ; last++ {
		set(t, db, "c", "2")
		left := last
		reads.Set(func(vfstest.Call) (int, error) {
			if left--; left < 0 {
				return 0, errDisk
			}
			return 0, nil
		})
		err := view.Refresh(t.Context())
		require.Equal(t, shown(), b.Usage().Memtables, "after %d calls: %v", last, err)
		if err == nil {
			break
		}
		failed++
	}
	require.Positive(t, failed)
	require.Positive(t, shown())
	reads.Set(nil)
	require.NoError(t, view.Close())
	close(flushes)
	require.NoError(t, db.Close())
	requireNothingCharged(t, b)
}
