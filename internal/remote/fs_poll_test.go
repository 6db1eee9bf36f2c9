package remote

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A view polls a store whose writer trims at once.
func TestAViewFindsItsWayPastWhatWasTrimmed(t *testing.T) {
	var c objstore.Counters
	mem := objstore.NewMem()
	w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	defer w.logs.Close()
	view := newViewer(t, objstore.WithCounters(mem, &c))
	view.f.o.Grace = time.Hour
	now := time.Now()
	view.f.now = func() time.Time { return now }
	requireRead := func(cost string, want ...uint64) {
		t.Helper()
		sequencetest.RequireCost(t, &c, cost, func() {
			records, err := view.read()
			require.NoError(t, err)
			require.Equal(t, want, records)
		})
	}
	put := func(n uint64) {
		require.NoError(t, w.write(n))
		require.NoError(t, w.log.Sync())
	}
	requireRead("get 1, list 1")
	requireRead("get 1")
	put(1)
	requireRead("get 2", 1)
	put(2)
	require.NoError(t, w.flush(t.Context()))
	requireRead("get 3", 1, 2)
	put(3)
	require.NoError(t, w.flush(t.Context()))
	_, err = w.seq.Trim(t.Context(), w.logs.lists, w.logs.lists, time.Now().Add(time.Hour))
	require.NoError(t, err)
	for range pollsPerList - 1 {
		requireRead("get 1", 1, 2)
	}
	requireRead("get 2, list 1", 1, 2, 3)
	now = now.Add(longAgo)
	requireRead("list 1", 1, 2, 3)
	requireRead("get 1", 1, 2, 3)
	view.f.LookAgain()
	requireRead("list 1", 1, 2, 3)
	for n := uint64(4); n < 20; n++ {
		put(n)
	}
	requireRead("get 17, list 1", w.records...)

	// An object that is damaged is passed by as soon as there is a list behind it.
	put(20)
	key := w.seq.Key(view.f.at.Next)
	require.NoError(t, mem.Delete(t.Context(), key))
	require.NoError(t, mem.PutIfAbsent(t.Context(), key, make([]byte, 100)))
	_, err = view.read()
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, w.flush(t.Context()))
	requireRead("get 2, list 1", w.records...)
	require.NoError(t, view.f.Close())
}

// A poll stalls between its beginning and its request, or in it, for longer than the grace. What it asks for was
// written and deleted meanwhile, and newer data is there.
func TestAPollThatStallsFindsWhatIsNewer(t *testing.T) {
	mem := objstore.NewMem()
	w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	defer w.logs.Close()
	faults := objstoretest.NewFaults(mem, 1)
	view := newViewer(t, faults)
	now := time.Now()
	view.f.now = func() time.Time { return now }
	for range 2 {
		_, err = view.read()
		require.NoError(t, err)
	}
	stalled := false
	faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.Get && !stalled {
			stalled = true
			require.NoError(t, w.write(1))
			require.NoError(t, w.log.Sync())
			goOn(t, w)
			now = now.Add(view.f.o.Grace)
		}
		return objstoretest.Fault{}
	})
	records, err := view.read()
	require.NoError(t, err)
	require.True(t, stalled)
	require.Equal(t, []uint64{1}, records)
	require.NoError(t, view.f.Close())
}

// goOn has a node publish a list, and delete what nobody needs any more.
func goOn(t *testing.T, n *node) {
	require.NoError(t, n.flush(t.Context()))
	_, err := n.seq.Trim(t.Context(), n.logs.lists, n.logs.lists, time.Now().Add(time.Hour))
	require.NoError(t, err)
}

// What a look has shown is deleted before it is read, by a writer who goes on: the list of files that an entry leads
// to, or that entry.
func TestAListThatIsTrimmedWhileItIsLookedUp(t *testing.T) {
	for nth := int64(1); nth <= 2; nth++ {
		mem := objstore.NewMem()
		w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
		require.NoError(t, err)
		require.NoError(t, w.write(1))
		require.NoError(t, w.log.Sync())
		var gets atomic.Int64
		faults := objstoretest.NewFaults(mem, 1)
		faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
			if c.Kind == objstore.Get {
				if gets.Add(1) == nth {
					goOn(t, w)
				}
			}
			return objstoretest.Fault{}
		})
		view := newViewer(t, faults)
		records, err := view.read()
		require.NoError(t, err)
		require.Equal(t, []uint64{1}, records)
		require.Greater(t, gets.Load(), nth)
		require.NoError(t, errors.Join(view.f.Close(), w.logs.Close()))
	}
}

// Who opens the store and stalls before the fence finds all that the writer before has put and moved meanwhile.
func TestAWriterThatStallsBeforeItsFenceFindsAll(t *testing.T) {
	mem := objstore.NewMem()
	w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	require.NoError(t, w.write(1))
	require.NoError(t, w.log.Sync())
	next, err := openNode(t.Context(), t, sequencetest.BeforePut(mem, 1, func() {
		for n := range uint64(3) {
			require.NoError(t, w.write(n+2))
			goOn(t, w)
		}
		require.NoError(t, w.write(5))
		require.NoError(t, w.log.Sync())
	}), LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, next.records)
	require.ErrorIs(t, w.flush(t.Context()), base.ErrFenced)
	require.NoError(t, errors.Join(next.logs.Close(), w.logs.Close()))
}

// Who stalled before the fence, and died, has put it where data was that is trimmed. A view that read up to there goes
// on behind it, at once and after it has looked by a listing.
func TestAViewPassesTheFenceOfOneWhoStalled(t *testing.T) {
	mem := objstore.NewMem()
	w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	view := newViewer(t, mem)
	view.f.o.Grace = time.Hour
	requireRead := func() {
		t.Helper()
		records, err := view.read()
		require.NoError(t, err)
		require.Equal(t, w.records, records)
	}
	require.NoError(t, w.write(1))
	require.NoError(t, w.log.Sync())
	requireRead()
	requireRead()
	stalled := sequence.Entry{Fence: true, Slot: view.f.at.Next, Epoch: view.f.at.Next}
	require.NoError(t, w.write(2))
	goOn(t, w)
	require.NoError(t, mem.PutIfAbsent(t.Context(), w.seq.Key(stalled.Slot), w.seq.Encode(stalled)))
	requireRead()
	view.f.LookAgain()
	requireRead()
	require.NoError(t, w.write(3))
	require.NoError(t, w.log.Sync())
	requireRead()
	require.NoError(t, errors.Join(view.f.Close(), w.logs.Close()))
}

// What a log is said to go on with, anywhere but at its end, is an error, wherever that is.
func TestAViewRefusesBytesThatDoNotFollow(t *testing.T) {
	for _, offset := range []uint64{9, 1 << 62, 1 << 63, 1<<63 + 8, math.MaxUint64} {
		mem := objstore.NewMem()
		w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
		require.NoError(t, err)
		view := newViewer(t, mem)
		require.NoError(t, w.write(1))
		require.NoError(t, w.log.Sync())
		_, err = view.read()
		require.NoError(t, err)
		_, err = view.read()
		require.NoError(t, err)
		b := filelist.Body{ListSlot: w.logs.lists, Chunks: []filelist.Chunk{{Log: w.number, Offset: offset,
			Data: []byte("a record")}}}
		_, err = w.logs.w.Put(t.Context(), func(uint64) []byte { return b.Encode() })
		require.NoError(t, err)
		records, err := view.read()
		require.ErrorContains(t, err, "bytes between are missing")
		require.Equal(t, []uint64{1}, records)
		require.NoError(t, errors.Join(view.f.Close(), w.logs.Close()))
	}
}

// A writer who trims at once goes on each time that somebody has looked where the sequence ends, for long. Nothing is
// damaged: who reads finds the end when the writer pauses, and so does who takes the store over.
func TestAWriterWhoIsAlwaysFasterIsNoDamage(t *testing.T) {
	mem := objstore.NewMem()
	w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	faster := func() *objstoretest.Faults {
		faults, gets := objstoretest.NewFaults(mem, 1), new(atomic.Int64)
		faults.Inject(func(c objstoretest.Call) objstoretest.Fault {
			if c.Kind == objstore.Get {
				if gets.Add(1) <= 10 {
					require.NoError(t, w.write(uint64(gets.Load())))
					goOn(t, w)
				}
			}
			return objstoretest.Fault{}
		})
		return faults
	}
	view := newViewer(t, faster())
	records, err := view.read()
	require.NoError(t, err)
	require.Equal(t, w.records, records)

	next := testFS(faster())
	eager(next.seq)
	lock, err := next.Lock(next.join(manifest.LockName), vfs.Exclusive)
	require.NoError(t, err)
	require.ErrorIs(t, w.flush(t.Context()), base.ErrFenced)
	require.NoError(t, errors.Join(lock.Close(), next.Close(), view.f.Close(), w.logs.Close()))

	// What is lost stays an error.
	mem = objstore.NewMem()
	w, err = openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	require.NoError(t, w.write(1))
	require.NoError(t, w.log.Sync())
	require.NoError(t, mem.Delete(t.Context(), w.seq.Key(w.logs.lists)))
	view = newViewer(t, mem)
	_, err = view.read()
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, errors.Join(view.f.Close(), w.logs.Close()))
}

// A first reading that breaks off is taken up again. What a view has stays as it is when a later one breaks off.
func TestAReadingThatBreaksOff(t *testing.T) {
	mem := objstore.NewMem()
	w, err := openNode(t.Context(), t, mem, LogOptions{Interval: -1}, false)
	require.NoError(t, err)
	faults := objstoretest.NewFaults(mem, 1)
	broken := errors.New("refused")
	refuse := func(slot uint64) {
		faults.Inject(func(c objstoretest.Call) (f objstoretest.Fault) {
			if c.Kind == objstore.Get && c.Key == w.seq.Key(slot) {
				f = objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: broken}
			}
			return f
		})
	}
	view := newViewer(t, faults)
	grow := func() (before []uint64) {
		before = w.records
		require.NoError(t, w.flush(t.Context()))
		for i := range uint64(2 * few) {
			require.NoError(t, w.write(i))
			require.NoError(t, w.log.Sync())
		}
		return before
	}
	grow()
	refuse(w.logs.Writer().Next() - 2)
	for range 2 {
		_, err = view.read()
		require.ErrorIs(t, err, broken)
	}
	refuse(0)
	records, err := view.read()
	require.NoError(t, err)
	require.Equal(t, w.records, records)
	before := grow()
	refuse(w.logs.Writer().Next() - 2)
	view.f.LookAgain()
	records, err = view.read()
	require.ErrorIs(t, err, broken)
	require.Equal(t, before, records)
	refuse(0)
	records, err = view.read()
	require.NoError(t, err)
	require.Equal(t, w.records, records)
	require.NoError(t, errors.Join(view.f.Close(), w.logs.Close()))
}
