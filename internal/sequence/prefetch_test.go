package sequence

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
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
		{20, 1 << 20, 3, maxPrefetch>>20 - 1},
		{3, maxPrefetch, 3, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := objstore.NewMem()
			w, _ := open(t, newTestSequence(mem))
			for range c.count {
				put(t, w, string(make([]byte, c.size)))
			}
			store := &roomStore{Store: mem}
			s := newTestSequence(store)
			l, err := s.Tail(t.Context())
			require.NoError(t, err)
			start, n := time.Now(), 0
			for e, err := range s.Entries(t.Context(), l, 1, l.Last) {
				require.NoError(t, err)
				if !e.Fence {
					n++
					require.LessOrEqual(t, cap(e.Body), 2*(c.size+HeaderSize))
				}
			}
			require.Equal(t, c.count, n)
			require.LessOrEqual(t, int(time.Since(start)/time.Second), c.seconds)
			require.EqualValues(t, c.reads, store.mostReads.Load())
			require.LessOrEqual(t, store.mostRoom.Load(), int64(max(maxPrefetch, c.size+HeaderSize+sumSize)))
		})
	}
}
