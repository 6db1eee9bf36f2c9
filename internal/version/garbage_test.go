package version

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// garbageTable returns a table some of whose entries are garbage, or get to be.
func garbageTable(t *rapid.T, i int) manifest.Table {
	second := func(name string) uint64 { return 1_000_000 * uint64(rapid.IntRange(0, 5000).Draw(t, name)) }
	tb := manifest.Table{Num: uint64(i + 1), Entries: 1 + uint64(rapid.IntRange(0, 100).Draw(t, "entries")),
		Smallest: fmt.Appendf(nil, "%04d", i), Largest: fmt.Appendf(nil, "%04d", i)}
	if rapid.IntRange(0, 3).Draw(t, "deletes") == 0 {
		tb.Deletes = tb.Entries / 2
	}
	if rapid.IntRange(0, 3).Draw(t, "overwritten") == 0 {
		tb.Overwritten = tb.Entries / 4
	}
	if rapid.IntRange(0, 9).Draw(t, "range deletes") == 0 {
		tb.RangeDeletes = 1
	}
	if rapid.Bool().Draw(t, "expiring") {
		tb.Expiring = tb.Entries - tb.Entries/uint64(rapid.IntRange(1, 4).Draw(t, "part"))
		moments := make([]uint64, 8)
		for i := range moments {
			moments[i] = second("moment")
		}
		slices.Sort(moments)
		if rapid.Bool().Draw(t, "octiles") {
			copy(tb.ExpiryOctiles[:], moments)
		}
		tb.LastExpiry = moments[7]
	}
	return tb
}

// untilGarbage is what UntilNextGarbage and UntilGarbage are for tables that are rewritten together,
// by a search over whole seconds.
func untilGarbage(tables []*Table, level int, now uint64) time.Duration {
	if MostlyGarbage(tables, level, now) || !MostlyGarbage(tables, level, math.MaxUint64) {
		return 0
	}
	return time.Second * time.Duration(sort.Search(3600, func(steps int) bool {
		return MostlyGarbage(tables, level, now+uint64(steps)*1_000_000)
	}))
}

func TestWasteIsFoundWithoutALookAtAllTables(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom([]int{0, 3, lastLevel}).Draw(t, "level")
		e := &manifest.Edit{}
		for i := range rapid.IntRange(1, 30).Draw(t, "tables") {
			e.Added = append(e.Added, manifest.AddedTable{Level: level, Table: garbageTable(t, i)})
		}
		v, err := (&Version{}).Apply(e)
		require.NoError(t, err)
		l := &v.Levels[level]
		for range 5 {
			now := rapid.Uint64Range(0, 5_100_000_000).Draw(t, "now")
			var garbage []*Table
			wait := time.Duration(0)
			for tb := range l.All() {
				one := []*Table{tb}
				if MostlyGarbage(one, level, now) {
					garbage = append(garbage, tb)
				}
				if w := untilGarbage(one, level, now); w > 0 && (wait == 0 || w < wait) {
					wait = w
				}
			}
			require.Equal(t, garbage, slices.Collect(l.Where(func(s *Totals) bool { return s.FirstGarbage <= now })))
			require.Equal(t, wait, l.UntilNextGarbage(now))
			for _, r := range v.Runs {
				require.Equal(t, MostlyGarbage(r.Tables(), level, now), r.MostlyGarbage(level, now))
				require.Equal(t, untilGarbage(r.Tables(), level, now), r.UntilGarbage(level, now))
			}
		}
	})
}
