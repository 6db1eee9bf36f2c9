package sstable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/property"
)

// Tombstones are dense by the number of keys in a row whose newest version is one, whatever older
// versions there are of them.
func TestDenseTombstonesAreCountedByStretches(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		tally, want, keys := newTally(), 0, 0
		for range rapid.IntRange(0, 8).Draw(t, "stretches") {
			deleted := rapid.Bool().Draw(t, "deleted")
			n := rapid.IntRange(1, 3).Draw(t, "live")
			if deleted {
				n = rapid.IntRange(DenseStretch-3, DenseStretch+3).Draw(t, "n")
			}
			versions := rapid.IntRange(0, 2).Draw(t, "older versions")
			for range n {
				user, kind := fmt.Appendf(nil, "%06d", keys), base.KindSet
				if keys++; deleted {
					kind = base.KindDelete
				}
				tally.add(base.MakeKey(user, 9, kind), nil, false)
				for v := range versions {
					older := []base.Kind{base.KindSet, base.KindDelete}[v]
					tally.add(base.MakeKey(user, base.SeqNum(8-v), older), nil, true)
				}
			}
			if deleted && n >= DenseStretch {
				want += n
			}
			tally.add(base.MakeKey(fmt.Appendf(nil, "%06d-live", keys), 9, base.KindMerge), nil, false)
		}
		require.EqualValues(t, want, tally.DenseDeletes)
		require.LessOrEqual(t, tally.DenseDeletes, tally.Deletes)
	})
}
