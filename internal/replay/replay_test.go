package replay

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/budget"
	"github.com/siftkv/siftkv/internal/memtable"
)

func TestRecordsThatCountBackwardsAreRefused(t *testing.T) {
	p := Replayer{Arena: 32 << 10, OwnTable: 16 << 10, LastSeq: 5}
	empty := make([]byte, batchrepr.HeaderSize)
	require.ErrorIs(t, p.Apply(empty, bytes.Clone), batchrepr.ErrMalformed)
	var b batchrepr.Writer
	b.Add(base.KindSet, []byte("k"), nil)
	require.ErrorContains(t, p.Apply(b.Seal(5), bytes.Clone), "comes again")
	require.NoError(t, p.Apply(b.Seal(6), bytes.Clone))
	require.Equal(t, base.SeqNum(6), p.LastSeq)
}

// The memtables of a log are few, and no larger than it needs: each is four times as large as the last, until together
// they are as large as Arena. Later ones have that size, and the next log starts small again.
func TestMemtablesOfALogGrow(t *testing.T) {
	arena := memtable.CapacityWithin(32 << 20)
	p := Replayer{Arena: int64(arena), OwnTable: arena / 2, Log: 1}
	value := make([]byte, 100<<10)
	write := func(n int) {
		for range n {
			var b batchrepr.Writer
			b.Add(base.KindSet, []byte("k"), value)
			require.NoError(t, p.Apply(b.Seal(p.LastSeq+1), bytes.Clone))
		}
	}
	write(600)
	p.Log = 2
	write(1)
	var got []int
	for _, m := range p.Mems {
		got = append(got, int(m.Capacity()>>20))
	}
	require.Equal(t, []int{1, 4, 16, 9, 30, 1}, got)
}

// Memtables of a store with a share of a budget are those of an even share at that moment: other stores may come
// between two of them.
func TestArenasFollowTheShare(t *testing.T) {
	b := budget.New(64 << 20)
	join := func() *budget.Share {
		s, err := b.Join(budget.Store{Memtables: 3, MemtableSize: 64 << 20, Writes: new(atomic.Uint64),
			Failed: new(atomic.Bool), Kept: func() int64 { return 0 }, GiveUp: func() {}, Wake: func() {}})
		require.NoError(t, err)
		return s
	}
	p := Replayer{Share: join(), Mems: []*memtable.Memtable{memtable.New(32 << 20)}}
	alone := p.arena()
	join()
	require.Less(t, p.arena(), alone)
}
