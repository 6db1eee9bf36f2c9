package objects

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
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A rudeStore is an object store one of whose methods leaves.
type rudeStore struct {
	objstore.Store
	*storetest.Rudeness
	when string
}

func (s rudeStore) at(when string) {
	if s.when == when {
		s.Act()
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
	flushed := func(t *testing.T, db *kv.DB) {
		_ = db.Set([]byte("flushed"), []byte("1"), nil)
		_ = db.Flush(t.Context())
	}
	compacted := func(t *testing.T, db *kv.DB) {
		flushed(t, db)
		_ = db.Compact(t.Context(), nil, nil)
	}
	for method, act := range map[string]func(t *testing.T, db *kv.DB, s rudeStore){
		"GetRange": func(t *testing.T, db *kv.DB, _ rudeStore) {
			_, err := db.MultiGet([][]byte{[]byte("k1"), []byte("k15"), []byte("k3")})
			require.ErrorContains(t, err, "Objects.Store.GetRange")
		},
		"Put":         func(t *testing.T, db *kv.DB, _ rudeStore) { compacted(t, db) },
		"PutIfAbsent": func(t *testing.T, db *kv.DB, _ rudeStore) { flushed(t, db) },
		"List": func(t *testing.T, _ *kv.DB, s rudeStore) {
			_, _ = (&objects.Config{Store: s}).Branches(t.Context())
		},
		"Delete": func(t *testing.T, db *kv.DB, s rudeStore) {
			compacted(t, db)
			_ = db.Set([]byte("flushed"), []byte("2"), nil)
			_ = db.Compact(t.Context(), nil, nil)
			storetest.Until(s.Called.Load)
		},
	} {
		for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				r := &storetest.Rudeness{Leave: leave}
				s := rudeStore{objstore.NewMem(), r, method}
				o := stores.With(harness.Harness{Backoff: storetest.Quick}, &kv.Options{Objects: &objects.Config{
					Store: s, LogInterval: time.Hour, Grace: -1, Patience: time.Millisecond}})
				db, err := kv.Open("", o)
				require.NoError(t, err)
				want := storetest.Acknowledge(t, db, kv.Sync)
				require.NoError(t, db.Flush(t.Context()))
				require.NoError(t, db.Close())
				db, err = kv.Open("", o) // and nothing has been read
				require.NoError(t, err)
				r.Armed.Store(true)
				storetest.SoonOrLeaves(t, method, func() { act(t, db, s) })
				r.Armed.Store(false)
				require.True(t, r.Called.Load(), "it was called")

				storetest.Soon(t, "a read", func() { storetest.RequireAcknowledged(t, want, db.Get) })
				storetest.Soon(t, "Set", func() {
					storetest.Until(func() bool { return db.Set([]byte("after"), []byte("1"), nil) == nil })
				})
				want["after"] = "1"
				storetest.Soon(t, "Flush", func() {
					storetest.Until(func() bool { return db.Flush(t.Context()) == nil })
				})
				storetest.Soon(t, "Close", func() { require.NoError(t, db.Close()) })
				db = openObjects(t, s.Store, nil)
				storetest.RequireAcknowledged(t, want, db.Get)
				require.NoError(t, db.Close())
			})
		}
	}
}
