package remote

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// requireCost requires how many requests something needs, such as "get 1, list 2".
func requireCost(t *testing.T, c *objstore.Counters, want string, do func()) {
	t.Helper()
	before := c.Snapshot()
	do()
	var got []string
	for kind, count := range c.Snapshot().Minus(before) {
		if count.Requests > 0 {
			got = append(got, fmt.Sprint(objstore.Kind(kind), " ", count.Requests))
		}
	}
	require.Equal(t, want, strings.Join(got, ", "))
}

func TestRequestsAreAsDocumented(t *testing.T) {
	var c objstore.Counters
	ctx := t.Context()
	s := newTestSequence(objstore.WithCounters(objstore.NewMem(), &c))
	var w *Writer
	requireCost(t, &c, "put-if-absent 1, list 2", func() { w, _ = open(t, s) })
	requireCost(t, &c, "put-if-absent 1", func() { put(t, w, "a") })
	requireCost(t, &c, "get 1, list 1", func() { _, err := s.Newest(ctx); require.NoError(t, err) })
	requireCost(t, &c, "get 1, put-if-absent 1, list 2", func() { w, _ = open(t, s) })
	requireCost(t, &c, "get 2, list 1", func() { _, err := s.Newest(ctx); require.NoError(t, err) })
	requireCost(t, &c, "get 4, list 1", func() {
		for _, err := range s.From(ctx, 1) {
			require.NoError(t, err)
		}
	})
	put(t, w, "b")
	requireCost(t, &c, "list 1, delete 1", func() { _, err := s.Trim(ctx, 4, always); require.NoError(t, err) })
	for size, gets := range map[int]int{guess - 84: 1, guess: 2, fetchGrowth * guess: 2, 17*fetchGrowth*guess - 84: 3} {
		slot := put(t, w, string(bytes.Repeat([]byte("x"), size)))
		requireCost(t, &c, fmt.Sprint("get ", gets), func() {
			e, err := s.Get(ctx, slot)
			require.NoError(t, err)
			require.Len(t, e.Body, size)
		})
	}
}

// TestAThousandFencesCostNothing opens a store again and again that nothing is written to.
func TestAThousandFencesCostNothing(t *testing.T) {
	var c objstore.Counters
	mem := objstore.NewMem()
	w, _ := open(t, newTestSequence(mem))
	put(t, w, "state")
	for range 2500 {
		open(t, newTestSequence(mem))
	}
	s := newTestSequence(objstore.WithCounters(mem, &c))
	requireCost(t, &c, "get 2, put-if-absent 1, list 2", func() {
		w, newest := open(t, s)
		require.Equal(t, "state", string(newest.Body))
		require.Equal(t, uint64(2502), w.Epoch())
	})
}

func TestAFollowerFindsItsWayPastWhatWasTrimmed(t *testing.T) {
	var c objstore.Counters
	mem := objstore.NewMem()
	w, _ := open(t, newTestSequence(mem))
	slot := put(t, w, "a")
	f := newTestSequence(objstore.WithCounters(mem, &c)).Follow(slot)
	now := time.Now()
	f.now, f.last = func() time.Time { return now }, now
	requirePoll := func(cost, want string) {
		t.Helper()
		requireCost(t, &c, cost, func() {
			e, found, err := f.Poll(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, string(e.Body))
			require.Equal(t, want != "", found)
		})
	}
	requirePoll("get 1", "")
	put(t, w, "b")
	w, _ = open(t, newTestSequence(mem))
	put(t, w, "c")
	requirePoll("get 4", "c")
	put(t, w, "d")
	last := put(t, w, "e")
	_, err := newTestSequence(mem).Trim(t.Context(), last, always)
	require.NoError(t, err)
	for range pollsPerList - 1 {
		requirePoll("get 1", "")
	}
	requirePoll("get 2, list 1", "e")
	now = now.Add(longAgo)
	requirePoll("get 2, list 1", "")
	requirePoll("get 1", "")
}
