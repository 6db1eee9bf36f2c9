package filterbudget

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/sstable"
)

func mustParse(t *testing.T, spec string) filterpolicy.Policy {
	t.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(t, err)
	return p
}

// What the builder of one family has declined, that of another with a salt may not.
func TestFamiliesWithASaltDeclineForThemselves(t *testing.T) {
	t.Parallel()
	p := Plan{Budget: 1000}
	declined := &sstable.Properties{FilterPolicy: "salted:xor:8"}
	require.False(t, p.PointDiffers(declined, mustParse(t, "salted:xor:9")))
	require.True(t, p.PointDiffers(declined, mustParse(t, "salted:blocked:10")))
	require.True(t, p.PointDiffers(declined, mustParse(t, "xor:8")))
}

// A file keeps a range filter that it has brought to where it would get none; a merge does not.
func TestAFilterThatIsStale(t *testing.T) {
	t.Parallel()
	ranges, err := filterpolicy.ParseRange("cut:6")
	require.NoError(t, err)
	p := Plan{Ranges: ranges, Prefix: "fixed:4"}
	point := mustParse(t, "blocked:10")
	have := &sstable.Properties{FilterFamily: point.Name(), FilterPolicy: point.String(), FilterPrefix: "fixed:4",
		RangeFilterPolicy: ranges.String()}
	for _, c := range []struct {
		want           Filters
		differs, stale bool
	}{
		{Filters{point, ranges}, false, false},
		{Filters{point, NoRanges}, true, false},
		{Filters{mustParse(t, "blocked:12"), ranges}, true, true},
		{Filters{None, ranges}, true, true},
	} {
		require.Equal(t, c.differs, p.Differs(have, c.want))
		require.Equal(t, c.stale, p.Stale(have, c.want))
	}
	p.Prefix = ""
	require.True(t, p.PointDiffers(have, point))
}
