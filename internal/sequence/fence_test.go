package sequence

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// TestWhoOpensAndStallsFindsTheEndAgain stalls an opening between its look at the end and its fence. The slot after
// that end is free again, as the writer has gone on and trimmed.
func TestWhoOpensAndStallsFindsTheEndAgain(t *testing.T) {
	mem := objstore.NewMem()
	s := newTestSequence(mem)
	w, _ := open(t, s)
	put(t, w, "old")
	stalled := newTestSequence(sequencetest.BeforePut(mem, 1, func() {
		for range 3 {
			put(t, w, "newer")
		}
		_, err := s.Trim(t.Context(), w.Next(), w.Next(), always)
		require.NoError(t, err)
		_, err = s.Get(t.Context(), 3)
		require.ErrorIs(t, err, objstore.ErrNotExist)
	}))
	successor, newest := open(t, stalled)
	require.Equal(t, "newer", string(newest.Body))
	require.Equal(t, uint64(5), newest.Slot)
	require.Equal(t, uint64(7), successor.Next())
	_, err := w.Put(t.Context(), raw("late"))
	requireFenced(t, err, 6)
}

// TestWhatIsInTheWayOfAFenceIsDeleted has the writer go on and trim when an opening has found its entry in the slot
// that was to have the fence, and before the opening reads it. The opening has no patience.
func TestWhatIsInTheWayOfAFenceIsDeleted(t *testing.T) {
	mem := objstore.NewMem()
	s := newTestSequence(mem)
	w, _ := open(t, s)
	put(t, w, "old")
	faults, puts := objstoretest.NewFaults(mem, 1), 0
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		switch {
		case c.Kind == objstore.PutIfAbsent:
			if puts++; puts == 1 {
				put(t, w, "newer")
			}
		case c.Kind == objstore.Get && puts == 1:
			puts++
			put(t, w, "newest")
			_, err := s.Trim(t.Context(), w.Next(), w.Next(), always)
			require.NoError(t, err)
		}
		return objstoretest.Fault{}
	})
	hasty := newTestSequence(faults)
	hasty.Wait = func(context.Context, int) bool { return false }
	_, newest := open(t, hasty)
	require.Equal(t, "newest", string(newest.Body))
	_, err := w.Put(t.Context(), raw("late"))
	require.ErrorIs(t, err, base.ErrFenced)
}

// An object that is there for puts alone is no end that moves on.
func TestAnOpeningEndsWhereNothingMoves(t *testing.T) {
	faults := objstoretest.NewFaults(objstore.NewMem(), 1)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.PutIfAbsent {
			f.Outcome, f.Err = objstoretest.NotPerformed, objstore.ErrExists
		}
		return f
	})
	s := newTestSequence(faults)
	s.Wait = func(_ context.Context, tries int) bool { return tries < 3 }
	_, _, err := s.Open(t.Context())
	require.ErrorIs(t, err, ErrMoved)
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// TestAStalledRequestIsFenced stalls a writer in the very request.
func TestAStalledRequestIsFenced(t *testing.T) {
	mem := objstore.NewMem()
	stalled, _ := open(t, newTestSequence(sequencetest.BeforePut(mem, 4, func() {
		s := newTestSequence(mem)
		for range 2 {
			w, _ := open(t, s)
			slot := put(t, w, "newer")
			_, err := s.Trim(t.Context(), slot, slot, always)
			require.NoError(t, err)
		}
	})))
	put(t, stalled, "acknowledged")
	_, err := stalled.Put(t.Context(), raw("late"))
	requireFenced(t, err, 3)
}

// TestADelayedDuplicateIsIgnored delivers the first request of a put when its slot has been trimmed.
func TestADelayedDuplicateIsIgnored(t *testing.T) {
	mem := objstore.NewMem()
	faults := objstoretest.NewFaults(mem, 1)
	s := newTestSequence(faults)
	w, _ := open(t, s)
	faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
		if c.Kind == objstore.PutIfAbsent && c.Nth == 1 {
			f.Outcome = objstoretest.Late
		}
		return f
	})
	require.Equal(t, uint64(2), put(t, w, "a"))
	require.Equal(t, uint64(3), put(t, w, "b"))
	deleted, err := s.Trim(t.Context(), 3, 3, always)
	require.NoError(t, err)
	require.Equal(t, 1, deleted)
	faults.Deliver()
	_, err = s.Get(t.Context(), 2)
	require.NoError(t, err, "it is back")
	_, newest := open(t, newTestSequence(mem))
	require.Equal(t, "b", string(newest.Body))
	deleted, err = newTestSequence(mem).Trim(t.Context(), 3, 3, always)
	require.NoError(t, err)
	require.Equal(t, 1, deleted)
}

// TestAPutOfUnknownOutcomeIsFinishedByTheNext ends a put before it knows its outcome.
func TestAPutOfUnknownOutcomeIsFinishedByTheNext(t *testing.T) {
	for _, outcome := range []objstoretest.Outcome{objstoretest.LostReply, objstoretest.Late} {
		mem := objstore.NewMem()
		faults := objstoretest.NewFaults(mem, 1)
		s := newTestSequence(faults)
		w, _ := open(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		faults.Inject(func(objstoretest.Call) objstoretest.Fault {
			cancel()
			return objstoretest.Fault{Outcome: outcome}
		})
		_, err := w.Put(ctx, raw("a"))
		require.ErrorIs(t, err, objstore.ErrUnknown)
		require.ErrorIs(t, err, context.Canceled)
		faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
		require.Equal(t, uint64(3), put(t, w, "b"))
		faults.Deliver()
		e, err := s.Get(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, "a", string(e.Body))
	}
}

// TestADelayedDeletionOfAStalledFence deletes the fence of who opened and stalled, in a slot that had been trimmed: the
// deletion was for the data that was there. That the fence can be put again is no fault of the store.
func TestADelayedDeletionOfAStalledFence(t *testing.T) {
	mem := objstore.NewMem()
	s := newTestSequence(mem)
	w, _ := open(t, s)
	put(t, w, "old")
	faults := objstoretest.NewFaults(mem, 1)
	var puts atomic.Int64
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind != objstore.PutIfAbsent {
			return objstoretest.Fault{}
		}
		switch puts.Add(1) {
		case 1:
			for range 3 {
				put(t, w, "newer")
			}
			_, err := s.Trim(t.Context(), w.Next(), w.Next(), always)
			require.NoError(t, err)
		case 2:
			require.NoError(t, mem.Delete(t.Context(), s.Key(3)))
		}
		return objstoretest.Fault{}
	})
	successor, newest := open(t, newTestSequence(faults))
	require.Equal(t, "newer", string(newest.Body))
	require.Equal(t, uint64(7), successor.Next())
}
