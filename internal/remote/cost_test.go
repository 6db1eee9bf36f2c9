package remote

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
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
	requireCost(t, &c, "put-if-absent 2, list 2", func() { w, _ = open(t, s) })
	requireCost(t, &c, "put-if-absent 1", func() { put(t, w, "a") })
	requireCost(t, &c, "get 1, list 1", func() { _, err := s.Newest(ctx); require.NoError(t, err) })
	requireCost(t, &c, "get 1, put-if-absent 2, list 2", func() { w, _ = open(t, s) })
	requireCost(t, &c, "get 1, list 1", func() { _, err := s.Newest(ctx); require.NoError(t, err) })
	requireCost(t, &c, "get 1, list 1", func() {
		l, err := s.Look(ctx)
		require.NoError(t, err)
		for _, err := range s.entries(ctx, l, 1, l.Last) {
			require.NoError(t, err)
		}
	})
	put(t, w, "b")
	requireCost(t, &c, "list 1, delete 1", func() { _, err := s.Trim(ctx, 4, 4, always); require.NoError(t, err) })
	for size, gets := range map[int]int{guess - 84: 1, guess: 2, fetchGrowth * guess: 2, 17*fetchGrowth*guess - 84: 3} {
		slot := put(t, w, string(bytes.Repeat([]byte("x"), size)))
		requireCost(t, &c, fmt.Sprint("get ", gets), func() {
			e, err := s.Get(ctx, slot)
			require.NoError(t, err)
			require.Len(t, e.Body, size)
		})
	}
}

// TestAThousandFencesCostTwoReads opens a store again and again that nothing is written to.
func TestAThousandFencesCostTwoReads(t *testing.T) {
	var c objstore.Counters
	mem := objstore.NewMem()
	w, _ := open(t, newTestSequence(mem))
	put(t, w, "state")
	fences := uint64(1100)
	if scale.Long() {
		fences = 2500
	}
	for i := range fences {
		s := newTestSequence(mem)
		open(t, s)
		if i == 900 {
			s = newTestSequence(objstore.WithCounters(mem, &c))
			requireCost(t, &c, "get 1, put-if-absent 2, list 2", func() { open(t, s) })
		}
	}
	s := newTestSequence(objstore.WithCounters(mem, &c))
	requireCost(t, &c, "get 3, put-if-absent 2, list 2", func() {
		w, newest := open(t, s)
		require.Equal(t, "state", string(newest.Body))
		require.Equal(t, fences+4, w.Epoch())
	})
}
