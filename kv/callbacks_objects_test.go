package kv

import (
	"context"
	"io"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A rudeStore is an object store one of whose methods leaves.
type rudeStore struct {
	objstore.Store
	*rudeness
	when string
}

func (s rudeStore) at(when string) {
	if s.when == when {
		s.act()
	}
}

func (s rudeStore) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	s.at("GetRange")
	return s.Store.GetRange(ctx, key, off, p)
}

// Put leaves when the object is there.
func (s rudeStore) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	err := s.Store.Put(ctx, key, r, size)
	s.at("Put")
	return err
}

// PutIfAbsent is as Put.
func (s rudeStore) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	err := s.Store.PutIfAbsent(ctx, key, body)
	s.at("PutIfAbsent")
	return err
}

func (s rudeStore) Delete(ctx context.Context, key string) error {
	s.at("Delete")
	return s.Store.Delete(ctx, key)
}

func (s rudeStore) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		s.at("List")
		s.Store.List(ctx, prefix, after)(yield)
	}
}

// An object store whose calls panic, or end their goroutine, is one whose calls fail: the store takes writes again when
// they no longer do, and nothing that was acknowledged is lost.
func TestObjectStoresMayNotReturn(t *testing.T) {
	t.Parallel()
	for method, act := range map[string]func(t *testing.T, db *DB, r *rudeness){
		"GetRange": func(t *testing.T, db *DB, _ *rudeness) {
			_, err := db.MultiGet([][]byte{[]byte("k1"), []byte("k15"), []byte("k3")})
			require.ErrorContains(t, err, "Objects.Store.GetRange")
		},
		"Put":         compacted,
		"PutIfAbsent": flushed,
		"List": func(_ *testing.T, db *DB, _ *rudeness) {
			_, _ = configOf(&db.opts).Branches(context.Background())
		},
		"Delete": func(t *testing.T, db *DB, r *rudeness) {
			compacted(t, db, r)
			_ = db.Set([]byte("flushed"), []byte("2"), nil)
			_ = db.Compact(t.Context(), nil, nil)
			storetest.Until(r.called.Load)
		},
	} {
		for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				r := &rudeness{leave: leave}
				mem := objstore.NewMem()
				o := Options{Objects: &objects.Config{Store: rudeStore{mem, r, method}, LogInterval: time.Hour,
					Grace:    -1,
					Patience: time.Millisecond}, harness: harness.Harness{Backoff: quickBackoff}}
				db, err := Open("", &o)
				require.NoError(t, err)
				want := acknowledge(t, db)
				require.NoError(t, db.Flush(t.Context()))
				require.NoError(t, db.Close())
				db, err = Open("", &o) // and nothing has been read
				require.NoError(t, err)
				r.armed.Store(true)
				soon(t, method, func() { act(t, db, r) })
				r.armed.Store(false)
				require.True(t, r.called.Load(), "it was called")

				soon(t, "a read", func() { requireAcknowledged(t, want, db) })
				soon(t, "Set", func() {
					storetest.Until(func() bool { return db.Set([]byte("after"), []byte("1"), nil) == nil })
				})
				want["after"] = "1"
				soon(t, "Flush", func() { storetest.Until(func() bool { return db.Flush(t.Context()) == nil }) })
				soon(t, "Close", func() { require.NoError(t, db.Close()) })
				db = openObjects(t, mem, nil)
				requireAcknowledged(t, want, db)
				require.NoError(t, db.Close())
			})
		}
	}
}

// Open gives back what it holds if a function of the application panics in it.
func TestOpenMayPanic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &rudeness{leave: func() { panic("boom") }}
	names := 0
	o := Options{Merger: namedMerger{Int64Add, func() {
		if names++; names > 3 {
			r.act()
		}
	}}}
	r.armed.Store(true)
	require.PanicsWithValue(t, "boom", func() { _, _ = Open(dir, &o) })
	r.armed.Store(false)
	db, err := Open(dir, &o)
	require.NoError(t, err, "the lock was given back")
	require.NoError(t, db.Close())
}

// A namedMerger is a merger whose name is asked.
type namedMerger struct {
	Merger
	asked func()
}

func (m namedMerger) Name() string { m.asked(); return m.Merger.Name() }
