package sequence

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/objstore"
)

// never is a time before which nothing was written, always one after everything.
var (
	never  = time.Time{}
	always = time.Now().Add(1000 * time.Hour)
)

// newTestSequence returns a client's view of the sequence in a store. It does not wait between tries.
func newTestSequence(store objstore.Store) *Sequence {
	s := New(store, "entry/", Options{})
	s.Wait = func(ctx context.Context, _ int) bool { return ctx.Err() == nil }
	return s
}

// Open makes the caller the sequence's writer, with an epoch higher than all before. It returns the newest data; its
// Slot is 0 if there is none. Nothing follows that data, because earlier writers can put nothing any more.
//
// It is Tail and Fence, again if need be, and a GET parallel to the last requests of Fence.
func (s *Sequence) Open(ctx context.Context) (w *Writer, newest Entry, err error) {
	err = s.Retry(func() error {
		v, err := s.Tail(ctx)
		if err != nil {
			return err
		}
		w, err = s.Fence(ctx, v, func(ctx context.Context) (err error) {
			newest = Entry{}
			if v.Data > 0 {
				newest, err = s.Data(ctx, v, v.Data)
			}
			return err
		})
		return err
	})
	if err != nil {
		return nil, Entry{}, err
	}
	return w, newest, nil
}

func open(t *testing.T, s *Sequence) (*Writer, Entry) {
	t.Helper()
	w, newest, err := s.Open(t.Context())
	require.NoError(t, err)
	return w, newest
}

// raw is a body that is the same in every slot.
func raw(body string) func(uint64) []byte { return func(uint64) []byte { return []byte(body) } }

func put(t *testing.T, w *Writer, body string) uint64 {
	t.Helper()
	slot, err := w.Put(t.Context(), raw(body))
	require.NoError(t, err)
	return slot
}

func requireFenced(t *testing.T, err error, epoch uint64) {
	t.Helper()
	require.ErrorIs(t, err, base.ErrFenced)
	var fenced *FencedError
	require.ErrorAs(t, err, &fenced)
	require.Equal(t, epoch, fenced.Epoch)
}

func TestAnEmptySequence(t *testing.T) {
	s := newTestSequence(objstore.NewMem())
	newest, err := s.Newest(t.Context())
	require.NoError(t, err)
	require.Zero(t, newest)
	_, err = s.Get(t.Context(), 1)
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.Zero(t, s.Store())
	w, newest := open(t, s)
	require.Zero(t, newest)
	require.NotZero(t, s.Store())
	require.Equal(t, uint64(1), w.Epoch())
	require.Equal(t, uint64(2), put(t, w, ""), "slot 1 has the fence")
}

func TestTheSuccessorHasAllAndThePredecessorIsFenced(t *testing.T) {
	mem := objstore.NewMem()
	first, second := newTestSequence(mem), newTestSequence(mem)
	a, _ := open(t, first)
	put(t, a, "a1")
	put(t, a, "a2")
	b, newest := open(t, second)
	require.Equal(t, "a2", string(newest.Body))
	require.Equal(t, uint64(4), b.Epoch())
	require.Equal(t, first.Store(), second.Store())
	for range 2 {
		_, err := a.Put(t.Context(), raw("a3"))
		requireFenced(t, err, 4)
	}
	require.Equal(t, uint64(5), put(t, b, "b1"))
	var all []string
	for e, err := range second.Entries(t.Context(), &TailView{}, 1, 5) {
		require.NoError(t, err)
		require.Equal(t, uint64(len(all)+1), e.Slot)
		all = append(all, fmt.Sprintf("%d:%t:%s", e.Epoch, e.Fence, e.Body))
	}
	require.Equal(t, []string{"1:true:", "1:false:a1", "1:false:a2", "4:true:", "4:false:b1"}, all)
}

func TestTrimKeepsFencesAndTheNewestData(t *testing.T) {
	mem := objstore.NewMem()
	s := newTestSequence(mem)
	for i := range 5 {
		w, _ := open(t, s)
		put(t, w, fmt.Sprint("x", i))
		put(t, w, fmt.Sprint("y", i))
	}
	deleted, err := s.Trim(t.Context(), 15, 15, never)
	require.NoError(t, err)
	require.Zero(t, deleted, "all are too young")
	deleted, err = s.Trim(t.Context(), 6, 6, always)
	require.NoError(t, err)
	require.Equal(t, 3, deleted, "slots 2, 3 and 5")
	deleted, err = s.Trim(t.Context(), 1<<63+5, 1<<63+5, always)
	require.NoError(t, err)
	require.Equal(t, 6, deleted, "all others but the newest")
	w, newest := open(t, s)
	require.Equal(t, "y4", string(newest.Body))
	require.Equal(t, uint64(16), w.Epoch())
	for slot := uint64(1); slot <= 16; slot++ {
		e, err := s.Get(t.Context(), slot)
		if slot%3 == 1 || slot == 15 {
			require.NoError(t, err)
			require.Equal(t, slot%3 == 1, e.Fence)
		} else {
			require.ErrorIs(t, err, objstore.ErrNotExist)
		}
	}
}

// TestAStalledWriterIsFencedForEver stops a writer before a put, lets successors work, be succeeded and trim.
func TestAStalledWriterIsFencedForEver(t *testing.T) {
	mem := objstore.NewMem()
	s := newTestSequence(mem)
	stalled, _ := open(t, s)
	put(t, stalled, "acknowledged")
	for range 3 {
		w, _ := open(t, s)
		for range 5 {
			put(t, w, "newer")
		}
		_, err := s.Trim(t.Context(), w.Next(), w.Next(), always)
		require.NoError(t, err)
	}
	_, err := stalled.Put(t.Context(), raw("late"))
	requireFenced(t, err, 3)
}

func TestRequestsAreAsDocumented(t *testing.T) {
	var c objstore.Counters
	ctx := t.Context()
	s := newTestSequence(objstore.WithCounters(objstore.NewMem(), &c))
	var w *Writer
	sequencetest.RequireCost(t, &c, "put-if-absent 2, list 2", func() { w, _ = open(t, s) })
	sequencetest.RequireCost(t, &c, "put-if-absent 1", func() { put(t, w, "a") })
	sequencetest.RequireCost(t, &c, "get 1, list 1", func() { _, err := s.Newest(ctx); require.NoError(t, err) })
	sequencetest.RequireCost(t, &c, "get 1, put-if-absent 2, list 2", func() { w, _ = open(t, s) })
	sequencetest.RequireCost(t, &c, "get 1, list 1", func() { _, err := s.Newest(ctx); require.NoError(t, err) })
	sequencetest.RequireCost(t, &c, "get 1, list 1", func() {
		l, err := s.Tail(ctx)
		require.NoError(t, err)
		for _, err := range s.Entries(ctx, l, 1, l.Last) {
			require.NoError(t, err)
		}
	})
	put(t, w, "b")
	sequencetest.RequireCost(t, &c, "list 1, delete 1", func() {
		_, err := s.Trim(ctx, 4, 4,
			always)
		require.NoError(t, err)
	})
	for size, gets := range map[int]int{guess - 84: 1, guess: 2, fetchGrowth * guess: 2, 17*fetchGrowth*guess - 84: 3} {
		slot := put(t, w, string(bytes.Repeat([]byte("x"), size)))
		sequencetest.RequireCost(t, &c, fmt.Sprint("get ", gets), func() {
			e, err := s.Get(ctx, slot)
			require.NoError(t, err)
			require.Len(t, e.Body, size)
		})
	}
}

// TestAThousandFencesCostTwoReads opens a store again and again that nothing is written to.
func TestAThousandFencesCostTwoReads(t *testing.T) {
	scale.OneGoroutine(t, "a count of requests; TestModelOfWriters has the goroutines")
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
			sequencetest.RequireCost(t, &c, "get 1, put-if-absent 2, list 2", func() { open(t, s) })
		}
	}
	s := newTestSequence(objstore.WithCounters(mem, &c))
	sequencetest.RequireCost(t, &c, "get 3, put-if-absent 2, list 2", func() {
		w, newest := open(t, s)
		require.Equal(t, "state", string(newest.Body))
		require.Equal(t, fences+4, w.Epoch())
	})
}
