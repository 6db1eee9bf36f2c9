package objstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func TestCountersCountEveryCall(t *testing.T) {
	var c objstore.Counters
	faults := objstoretest.NewFaults(objstore.NewMem(), 1)
	s, ctx := objstore.WithCounters(faults, &c), t.Context()
	since := func(before objstore.Counts, kind objstore.Kind) objstore.Count {
		after := c.Snapshot().Minus(before)
		require.Equal(t, after[kind], after.Total(), "nothing else was counted")
		return after[kind]
	}
	inject := func(fault objstoretest.Fault) {
		faults.Inject(func(objstoretest.Call) objstoretest.Fault { return fault })
	}
	count := func(kind objstore.Kind, call func() error, want objstore.Count) {
		t.Helper()
		before := c.Snapshot()
		_ = call()
		want.Calls = 1
		require.Equal(t, want, since(before, kind))
	}
	get := func(key string, n int) func() error {
		return func() error {
			_, err := s.GetRange(ctx, key, 0, make([]byte, n))
			return err
		}
	}
	put := func() error { return s.Put(ctx, "put", strings.NewReader("12345"), 5) }
	create := func() error { return s.PutIfAbsent(ctx, "created", []byte("123")) }

	count(objstore.Put, put, objstore.Count{Requests: 1, Bytes: 5})
	count(objstore.PutIfAbsent, create, objstore.Count{Requests: 1, Bytes: 3})
	count(objstore.PutIfAbsent, create, objstore.Count{Requests: 1, Bytes: 3})
	count(objstore.Get, get("put", 5), objstore.Count{Requests: 1, Bytes: 5})
	count(objstore.Get, get("put", 10), objstore.Count{Requests: 1, Bytes: 5})
	count(objstore.Get, get("absent", 10), objstore.Count{Requests: 1})
	count(objstore.Get, get("put", 0), objstore.Count{})
	count(objstore.Get, get("../put", 1), objstore.Count{Failed: 1})
	count(objstore.Get, func() error {
		_, err := s.GetRange(ctx, "put", -5, make([]byte, 4))
		return err
	}, objstore.Count{Failed: 1})
	count(objstore.Delete, func() error { return s.Delete(ctx, "absent") }, objstore.Count{Requests: 1})

	ended, cancel := context.WithCancel(ctx)
	cancel()
	count(objstore.Delete, func() error { return s.Delete(ended, "put") }, objstore.Count{Failed: 1})

	inject(objstoretest.Fault{Outcome: objstoretest.LostReply})
	count(objstore.Put, put, objstore.Count{Requests: 1, Bytes: 5, Unknown: 1, Failed: 1})
	inject(objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: objstore.ErrThrottled})
	count(objstore.Get, get("put", 5), objstore.Count{Requests: 1, Throttled: 1, Failed: 1})
	inject(objstoretest.Fault{Truncate: true})
	count(objstore.Get, get("put", 5), objstore.Count{Requests: 1, Bytes: 2, Failed: 1})

	require.NoError(t, s.Close())
	require.ErrorIs(t, create(), objstore.ErrClosed, "closing goes through")
}

func TestCountersCountPagesOfListings(t *testing.T) {
	var c objstore.Counters
	s, ctx := objstore.WithCounters(objstore.NewMem(), &c), t.Context()
	for _, n := range []struct{ objects, requests int64 }{{0, 1}, {1, 1}, {1000, 1}, {1001, 2}} {
		for i := range n.objects {
			_ = s.PutIfAbsent(ctx, fmt.Sprint("k", i), nil)
		}
		listing := s.List(ctx, "", "")
		before := c.Snapshot()
		for range 2 {
			for _, err := range listing {
				require.NoError(t, err)
			}
		}
		want := objstore.Count{Calls: 2, Requests: 2 * n.requests}
		require.Equal(t, want, c.Snapshot().Minus(before)[objstore.List], "%d objects", n.objects)
	}
}

// A metered store reports what a client of a server might send for a read: two tries, and a hedge that ends later.
type metered struct{ objstore.Store }

func (m metered) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	meter := objstore.MeterFrom(ctx)
	meter.Add(objstore.Get, objstore.Count{Requests: 1, Throttled: 1})
	n, err := m.Store.GetRange(ctx, key, off, p)
	meter.Add(objstore.Get, objstore.Count{Requests: 1, Retries: 1, Bytes: int64(n)})
	meter.Add(objstore.Get, objstore.Count{Requests: 1, Hedges: 1, Bytes: int64(n)})
	return n, err
}

// TestMetersReachTheStore through what is wrapped around it, for all counters on the way.
func TestMetersReachTheStore(t *testing.T) {
	var inner, outer objstore.Counters
	ctx := t.Context()
	base := objstore.NewMem()
	require.NoError(t, base.PutIfAbsent(ctx, "db/key", []byte("12345")))
	part := objstore.Sub(objstore.WithCounters(metered{base}, &inner), "db")
	s := objstore.WithCounters(objstoretest.NewFaults(part, 1), &outer)
	n, err := s.GetRange(ctx, "key", 0, make([]byte, 5))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	want := objstore.Count{Calls: 1, Requests: 3, Bytes: 10, Retries: 1, Hedges: 1, Throttled: 1}
	require.Equal(t, want, inner.Snapshot()[objstore.Get])
	require.Equal(t, want, outer.Snapshot()[objstore.Get])

	require.NoError(t, s.Delete(ctx, "key"), "which this store does not report")
	want = objstore.Count{Calls: 1, Requests: 1}
	require.Equal(t, want, inner.Snapshot()[objstore.Delete])
	require.Equal(t, want, outer.Snapshot()[objstore.Delete])

	_, err = metered{base}.GetRange(ctx, "db/key", 0, make([]byte, 5)) // without counters there is no meter
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

func TestCountersAreConcurrent(t *testing.T) {
	var c objstore.Counters
	base, ctx := objstore.NewMem(), t.Context()
	var all sync.WaitGroup
	for range 4 {
		s := objstore.WithCounters(base, &c)
		all.Go(func() {
			for range 100 {
				if s.Delete(ctx, "absent") != nil {
					t.Error("it fails")
				}
				counts := c.Snapshot()[objstore.Delete]
				if counts.Calls != counts.Requests {
					t.Error("half of a call is in the snapshot")
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, objstore.Count{Calls: 400, Requests: 400}, c.Snapshot().Total())
}
