package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/objects"
)

// TestColumnsOfTheFilesAreShown finds a form that there is not, a column that shows nothing, and an experiment whose
// tables nothing makes.
func TestColumnsOfTheFilesAreShown(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, cellTables.Scans)
	for _, c := range append(columnsOf(nil), append(cellTables.Scans, append(cellTables.Stores,
		cellTables.Workers...)...)...) {
		require.Contains(t, formats, c.Format, c.Name)
		require.NotEmpty(t, c.Unit, c.Name)
		require.NotEmpty(t, c.Help, c.Name)
	}
	for experiment, all := range tables {
		require.Contains(t, experiments, experiment)
		for _, table := range all {
			require.NotEmpty(t, table.By)
			for _, c := range table.Columns {
				if _, ok := special[c.Show]; !ok {
					require.Contains(t, formats, c.Form, c.Name)
					require.Contains(t, []string{"", "spread", "repeated", "interval"}, c.Show, c.Name)
					require.NotEmpty(t, c.Of, c.Name)
				}
			}
		}
	}
	disk := map[string]string{} // the tree that a column is of
	for _, c := range tables["cold"][0].Columns {
		if c.Of == "disk" {
			disk[c.Name] = c.With["tree"]
		}
	}
	require.Equal(t, map[string]string{"disk\n/ data": compare.TreeCalm, "settled\n/ data": compare.TreeSettled}, disk)
	var asked []string
	for _, c := range tables["objects"][0].Columns {
		if kind, number, ok := strings.Cut(c.Of, " "); ok && number == "gets" {
			asked = append(asked, kind)
		}
	}
	require.Equal(t, objects.LookupKinds, asked)
	for experiment := range notes {
		_, ok := experiments[experiment]
		require.True(t, ok || experiment == "trace", experiment)
	}
}
