package siftraft

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// Raft appends in one goroutine, compacts in another, and reads in one for each follower.
func TestConcurrentUseOfALog(t *testing.T) {
	const last = 2000
	s := openStore(t)
	require.NoError(t, s.StoreLog(entry(1, 1)))
	var all sync.WaitGroup
	all.Go(func() { // it compacts
		for {
			first, err := s.FirstIndex()
			require.NoError(t, err)
			end, err := s.LastIndex()
			require.NoError(t, err)
			if end >= last {
				return
			}
			if end > first+20 {
				require.NoError(t, s.DeleteRange(first, end-20))
				now, err := s.FirstIndex()
				require.NoError(t, err)
				require.Equal(t, end-19, now)
			}
		}
	})
	for range 3 {
		all.Go(func() { // they follow
			for next := uint64(1); next < last; {
				var e raft.Log
				switch err := s.GetLog(next, &e); {
				case err == nil:
					require.Equal(t, *entry(next, 1), e)
					next++
				case errors.Is(err, raft.ErrLogNotFound):
					next, err = s.FirstIndex()
					require.NoError(t, err)
					require.Positive(t, next, "the log is never empty")
				default:
					require.NoError(t, err)
				}
			}
		})
	}
	all.Go(func() { // it votes
		for i := range uint64(200) {
			require.NoError(t, s.SetUint64([]byte("term"), i))
			got, err := s.GetUint64([]byte("term"))
			require.NoError(t, err)
			require.Equal(t, i, got)
		}
	})
	for i := uint64(2); i <= last; i += 3 {
		require.NoError(t, s.StoreLogs(entries(i, i+2, 1)))
	}
	all.Wait()
}

// Views read beside everything that raft does, and each sees one state.
func TestConcurrentViews(t *testing.T) {
	f := openFSM(t, t.TempDir(), nil)
	both := func(index uint64) *raft.Log {
		var c Command
		require.NoError(t, c.Set([]byte("a"), fmt.Append(nil, index)))
		require.NoError(t, c.Set([]byte("b"), fmt.Append(nil, index)))
		return &raft.Log{Index: index, Term: 1, Data: c.Bytes()}
	}
	require.Nil(t, f.Apply(both(1)))
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				require.NoError(t, f.View(func(s *kv.Snapshot) error {
					a, err := s.Get([]byte("a"))
					require.NoError(t, err)
					b, err := s.Get([]byte("b"))
					require.NoError(t, err)
					require.Equal(t, string(a), string(b))
					return nil
				}))
				_ = f.Applied()
				require.NoError(t, f.Err())
			}
		})
	}
	for i := uint64(2); i < 10; i++ {
		require.Nil(t, f.Apply(both(i)))
		s := persist(t, f)
		require.Nil(t, f.Apply(both(i+1)))
		require.NoError(t, f.Restore(stream(s)))
	}
	close(ended)
	all.Wait()
}
