package budget

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// join opens a store of three memtables.
func join(t *testing.T, b *Memory, writes *atomic.Uint64, giveUp func()) *Share {
	t.Helper()
	s, err := b.Join(Store{Memtables: 3, MemtableSize: 32 << 20, Writes: writes, Failed: new(atomic.Bool),
		Kept: func() int64 { return 0 }, GiveUp: giveUp, Wake: func() {}})
	require.NoError(t, err)
	s.Begin()
	return s
}

// A store that writes is given what no other needs, and a store that stopped is asked to give up what it has.
func TestStoresThatWriteGetWhatOthersGiveUp(t *testing.T) {
	t.Parallel()
	b := New(16 << 20)
	var writes [2]atomic.Uint64
	asked := make(chan struct{}, 16)
	idle := join(t, b, &writes[0], func() { asked <- struct{}{} })
	busy := join(t, b, &writes[1], func() {})
	writes[0].Add(1)
	size, kept := idle.Promise()
	require.Greater(t, size, b.Memtables()/6, "it writes alone")
	idle.Taken.Add(3 * size)
	kept()
	for range 4 * b.Memtables() / size { // the other has stopped, by the clock of what was given
		writes[1].Add(1)
		_, kept := busy.Promise()
		kept()
	}
	<-asked
	require.True(t, idle.TooLarge(size))
	idle.Leave()
	busy.Leave()
	require.Equal(t, 1, len(b.gone), "iterators may have its memtables")
	idle.Taken.Store(0)
	require.Zero(t, b.Usage().Bytes())
}

// Requests for threads are granted in turn, and one that is cancelled passes its thread on.
func TestThreadsAreGrantedInTurn(t *testing.T) {
	t.Parallel()
	b := New(64 << 20)
	s := join(t, b, new(atomic.Uint64), func() {})
	for range b.Threads() {
		require.True(t, s.TryThread())
	}
	first, second := s.NewRequest(), s.NewRequest()
	require.False(t, first.Acquire())
	require.False(t, second.Acquire())
	require.False(t, s.TryThread())
	require.Equal(t, 2, b.Usage().Waiting)
	s.ReleaseThread()
	require.False(t, first.Queued())
	require.True(t, second.Queued())
	first.Cancel()
	require.False(t, second.Queued(), "the thread went to the next")
	require.True(t, second.Acquire())
	for range b.Threads() {
		s.ReleaseThread()
	}
	require.Zero(t, b.Usage().Compactions)
	s.Leave()
}

// A budget that is too small for one more store says how large it must be.
func TestABudgetThatIsTooSmall(t *testing.T) {
	t.Parallel()
	b := New(MinMemory)
	s := join(t, b, new(atomic.Uint64), func() {})
	_, err := b.Join(Store{Memtables: 100})
	require.ErrorIs(t, err, ErrTooSmall)
	require.ErrorContains(t, err, "want a budget of")
	s.Leave()
	require.Zero(t, b.Usage().Stores)
}
