package memtable

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/offheap"
	"github.com/siftkv/siftkv/internal/property"
)

// A memtable in memory that another one had answers as one in new memory does.
func TestMemoryIsUsedAgainAsNew(t *testing.T) {
	const capacity = 64 << 10
	property.Check(t, func(t *rapid.T) {
		p := Memory{Keep: capacity}
		defer p.Close()
		for range 4 {
			m, fresh := p.New(capacity), New(capacity)
			m.Ref()
			for seq := range rapid.IntRange(0, 300).Draw(t, "writes") {
				user := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 12, -1).Draw(t, "key"))
				value := make([]byte, rapid.IntRange(0, 400).Draw(t, "size"))
				k := base.MakeKey(user, base.SeqNum(seq+1), base.KindSet)
				hash := uint64(len(user)) * 0x9e3779b97f4a7c15
				require.Equal(t, fresh.Add(k, hash, value), m.Add(k, hash, value))
			}
			a, b := fresh.NewIter(), m.NewIter()
			for ok := a.First(); ok; ok = a.Next() {
				require.True(t, b.Next() || b.First())
				require.Equal(t, a.Key(), b.Key())
				require.Equal(t, a.Value(), b.Value())
			}
			require.False(t, b.Next())
			require.Equal(t, fresh.Len(), m.Len())
			m.Unref()
		}
	})
}

func TestMemoryOfTheUsualSizeIsKeptOnce(t *testing.T) {
	before := offheap.Used()
	p := Memory{Keep: 1 << 20}
	a, b, large := p.New(1<<20), p.New(1<<20), p.New(4<<20)
	each := int64(layoutOf(1 << 20).size())
	for _, m := range []*Memtable{a, b, large} {
		m.Ref()
		m.Ref()
		m.Unref()
	}
	mem := a.memory
	a.Unref()
	c := p.New(1 << 20)
	require.Same(t, mem, c.memory)
	c.Ref()
	large.Unref()
	b.Unref()
	c.Unref()
	require.Equal(t, before+each, offheap.Used())
	d, e := p.New(1<<20), p.New(1<<20)
	d.Ref()
	e.Ref()
	p.Close()
	d.Unref()
	e.Unref()
	require.Equal(t, before, offheap.Used())
}
