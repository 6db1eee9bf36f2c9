package version

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each edit makes several changes, some of them to one number, and leaves the indexes of those before it as they were.
func TestAnEditChangesNoIndexButItsOwn(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var index fileIndex[uint64]
	model := map[uint64]uint64{}
	var indexes []fileIndex[uint64]
	var models []map[uint64]uint64
	for edit := range 200 {
		by := new(byte)
		for range 1 + rng.IntN(20) {
			num := rng.Uint64N(1 << (1 + edit/20))
			if rng.IntN(2) == 0 {
				index = index.with(num, nil, by)
				delete(model, num)
				continue
			}
			value := rng.Uint64()
			index, model[num] = index.with(num, &value, by), value
		}
		indexes, models = append(indexes, index), append(models, maps.Clone(model))
	}
	for i, index := range indexes {
		var all []uint64
		index.root.all(func(v *uint64) bool { all = append(all, *v); return true })
		var want []uint64
		for _, num := range slices.Sorted(maps.Keys(models[i])) {
			require.Equal(t, models[i][num], *index.get(num))
			want = append(want, models[i][num])
		}
		require.Equal(t, want, all)
	}
}
