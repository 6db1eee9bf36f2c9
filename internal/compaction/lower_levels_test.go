package compaction

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// A pick weighs a few tables of a large level, the next one others, and all of them if need be.
func TestALargeLevelIsWeighedByStretches(t *testing.T) {
	const tables = 3*maxWeighed + 100
	var added []manifest.AddedTable
	for i := range tables {
		key := fmt.Sprintf("%05d", i)
		below := int64(5000)
		if i%maxWeighed == 77 {
			below = 4000 // the best of each stretch
		}
		added = append(added, table(lastLevel-1, key, key, 1000), table(lastLevel, key, key, below))
	}
	in := input(versionOf(t, added...))
	level := in.Version.Levels[lastLevel-1].Tables()
	for round := range 9 {
		i := round%4*maxWeighed + 77
		j := in.fromLevel(lastLevel-1, 0)
		require.NotNil(t, j)
		require.Equal(t, []*version.Table{level[i]}, j.Inputs[lastLevel-1], "pick %d", round)
	}
	for _, free := range []int{500, 0, tables - 1} { // wherever the next stretch begins
		for i, table := range level {
			table.Compacting = i != free
		}
		j := in.fromLevel(lastLevel-1, 0)
		require.NotNil(t, j)
		require.Equal(t, []*version.Table{level[free]}, j.Inputs[lastLevel-1])
	}
	level[tables-1].Compacting = true
	require.Nil(t, in.fromLevel(lastLevel-1, 0))
}
