package kv

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/stretchr/testify/require"
)

// A pick weighs a few tables of a large level, the next one others, and all of them if need be.
func TestALargeLevelIsWeighedByStretches(t *testing.T) {
	const tables = 3*mostWeighed + 100
	e := &manifest.Edit{}
	for i := range tables {
		add := func(level int, num uint64, size int64) {
			e.Added = append(e.Added, manifest.AddedTable{Level: level, Table: manifest.Table{Num: num, Size: size,
				Entries: 1, Smallest: fmt.Appendf(nil, "%05d", i), Largest: fmt.Appendf(nil, "%05d", i)}})
		}
		add(lastLevel-1, uint64(2*i+1), 1000)
		below := int64(5000)
		if i%mostWeighed == 77 {
			below = 4000 // the best of each stretch
		}
		add(lastLevel, uint64(2*i+2), below)
	}
	v, err := (&version.Version{}).Apply(e)
	require.NoError(t, err)
	db := openMem(t, nil)
	db.mu.Lock()
	defer db.mu.Unlock()
	level := v.Levels[lastLevel-1].Tables()
	for round := range 9 {
		i := round%4*mostWeighed + 77
		c := db.pickFromLevel(v, lastLevel-1, 0)
		require.NotNil(t, c)
		require.Equal(t, []*version.Table{level[i]}, c.inputs[lastLevel-1], "pick %d", round)
	}
	for _, free := range []int{500, 0, tables - 1} { // wherever the next stretch begins
		for i, table := range level {
			table.Compacting = i != free
		}
		c := db.pickFromLevel(v, lastLevel-1, 0)
		require.NotNil(t, c)
		require.Equal(t, []*version.Table{level[free]}, c.inputs[lastLevel-1])
	}
	level[tables-1].Compacting = true
	require.Nil(t, db.pickFromLevel(v, lastLevel-1, 0))
}
