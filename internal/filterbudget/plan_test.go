package filterbudget

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	_ "github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

func plan(t *testing.T, budget int64) *Plan {
	t.Helper()
	point, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	return &Plan{Point: point, Ranges: NoRanges, RangesOfLast: true, Budget: budget}
}

// withTable returns a version of one table of the last level.
func withTable(t *testing.T, entries, filterBytes uint64) *version.Version {
	t.Helper()
	v, err := new(version.Version).Apply(&manifest.Edit{Added: []manifest.AddedTable{{Level: lastLevel,
		Table: manifest.Table{Num: 1, Size: 100, Entries: entries, FilterBytes: filterBytes,
			Smallest: []byte("a"), Largest: []byte("z")}}}})
	require.NoError(t, err)
	return v
}

func TestWithoutABudgetFiltersAreThoseOfThePlan(t *testing.T) {
	p := plan(t, 0)
	require.Equal(t, Filters{p.Point, p.Ranges}, p.For(Tables{Version: withTable(t, 1000, 1250), Entries: 10}))
}

func TestYoungTablesGetMoreOfABudget(t *testing.T) {
	p := plan(t, 1250)
	v := withTable(t, 1000, 1000)
	young := p.For(Tables{Version: v, Entries: 10}).Point.String()
	old := p.For(Tables{Version: v, To: version.RunID{Level: lastLevel}, Entries: 10}).Point.String()
	require.NotEqual(t, old, young)
	require.NotEqual(t, None.String(), old)
	require.Equal(t, None, plan(t, 8).For(Tables{Version: v, Entries: 1000}).Point, "too little for any")
}

func TestTablesThatStayAreFairOnlyToFair(t *testing.T) {
	p := plan(t, 1250)
	made := Tables{Version: withTable(t, 1000, 5000), Entries: 1000} // four times its share
	require.Equal(t, p.Fair(made), p.Fair(Tables{Version: withTable(t, 1000, 1), Entries: 1000}))
	require.NotEqual(t, p.Fair(made), p.For(made))
}

func TestTheOldestRunHasRangeFiltersIfThePlanSaysSo(t *testing.T) {
	ranges, err := filterpolicy.ParseRange("none")
	require.NoError(t, err)
	p := plan(t, 0)
	p.Ranges, p.RangesOfLast = named{ranges}, false
	v := withTable(t, 1000, 1250)
	all := v.Levels[lastLevel].Tables()
	last := version.RunID{Level: lastLevel}
	require.Equal(t, NoRanges, p.For(Tables{Version: v, To: last, Inputs: all}).Ranges)
	require.Equal(t, p.Ranges, p.For(Tables{Version: v, To: version.RunID{Level: 3}, Inputs: all}).Ranges)
	require.Equal(t, p.Ranges, p.For(Tables{Version: v, To: version.RunID{Level: lastLevel, Run: 7}}).Ranges,
		"an older run stays")
}

// named is a range policy that is not NoRanges.
type named struct{ filterpolicy.RangePolicy }
