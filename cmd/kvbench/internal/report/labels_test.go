package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

func TestLabelsAreShortAndUnlike(t *testing.T) {
	set := celltest.Samples()
	set[3].Settings.Compaction, set[3].Settings.Seed = "tiered", 2
	set[4].Settings.Compression = "none"
	l := NewLabels(cell.Measured(set))
	seen := map[string]bool{}
	for i, want := range []string{
		"null none",
		"siftkv none",
		"siftkv bloom:8 young:2",
		"siftkv blocked:12 tiered seed 2",
		"pebble own:10 compression none",
	} {
		require.Equal(t, want, l.Text(i))
		require.False(t, seen[want])
		seen[want] = true
		require.Len(t, l.Values(i), len(l.Varying))
	}
}

func TestLabelsOfRowsHaveNamesOfSettings(t *testing.T) {
	t.Parallel()
	r := tidy.New("compare", "about", nil, environ.Environment{})
	r.Add(tidy.Of("operation", "read"), "per_second", "1/s", 1)
	r.Add(tidy.Of("operation", "scan"), "per_second", "1/s", 1)
	require.Equal(t, "operation scan", NewLabels(r.Measured()).Text(1))
}
