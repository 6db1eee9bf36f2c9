package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A roomStore takes a second for each read, and notes the most room for bytes that reads have had at a time.
type roomStore struct {
	objstore.Store
	reads, room, mostReads, mostRoom atomic.Int64
}

func (s *roomStore) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	defer s.reads.Add(-1)
	defer s.room.Add(-int64(len(p)))
	s.mostReads.Store(max(s.mostReads.Load(), s.reads.Add(1)))
	s.mostRoom.Store(max(s.mostRoom.Load(), s.room.Add(int64(len(p)))))
	time.Sleep(time.Second)
	return s.Store.GetRange(ctx, key, off, p)
}

// Small entries are read many side by side, large ones few, and one that is larger than all room alone. What is small
// keeps little memory, also if its size was not known.
func TestReadingAheadIsBoundedInBytes(t *testing.T) {
	for _, c := range []struct{ count, size, seconds, reads int }{
		{1100, 10, 1 + 1100/maxParallel, maxParallel},
		{20, 1 << 20, 3, maxAhead>>20 - 1},
		{3, maxAhead, 3, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := objstore.NewMem()
			w, _ := open(t, newTestSequence(mem))
			for range c.count {
				put(t, w, string(make([]byte, c.size)))
			}
			store := &roomStore{Store: mem}
			s := newTestSequence(store)
			l, err := s.Look(t.Context())
			require.NoError(t, err)
			start, n := time.Now(), 0
			for e, err := range s.entries(t.Context(), l, 1, l.Last) {
				require.NoError(t, err)
				if !e.Fence {
					n++
					require.LessOrEqual(t, cap(e.Body), 2*(c.size+headerSize))
				}
			}
			require.Equal(t, c.count, n)
			require.LessOrEqual(t, int(time.Since(start)/time.Second), c.seconds)
			require.EqualValues(t, c.reads, store.mostReads.Load())
			require.LessOrEqual(t, store.mostRoom.Load(), int64(max(maxAhead, c.size+headerSize+sumSize)))
		})
	}
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
			if c.Kind == objstore.Get && c.Key == w.seq.key(slot) {
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

// A log is reported when it has many entries, not before, and not each time after that.
func TestALogWithManyEntriesIsReported(t *testing.T) {
	var long []uint64
	logs, _ := recoverLogs(t, objstore.NewMem())
	logs.long = func(log uint64) { long = append(long, log) }
	publish(t, logs, 5)
	write := func(number uint64, n int) {
		f, err := logs.Create(number)
		require.NoError(t, err)
		for range n {
			_, err := f.Write([]byte("x"))
			require.NoError(t, err)
			require.NoError(t, f.Sync())
		}
		require.NoError(t, f.Close())
		require.Equal(t, n, logs.Entries(number))
	}
	write(5, maxEntries-1)
	require.Empty(t, long)
	write(6, maxEntries+2*reportEvery)
	require.Equal(t, []uint64{6, 6, 6}, long)
	publish(t, logs, 7)
	require.Zero(t, logs.Entries(6))
}
