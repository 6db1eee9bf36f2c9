package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColumnsOfTheFilesAreShown finds a form that there is not, a column that shows nothing, and an experiment whose
// tables nothing makes.
func TestColumnsOfTheFilesAreShown(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, cellTables.Scans)
	for _, c := range append(columnsOf(nil), append(cellTables.Scans, append(cellTables.Stores,
		cellTables.Workers...)...)...) {
		require.Contains(t, formats, c.Format, c.Name)
		require.NotEmpty(t, c.Unit+c.Help, c.Name)
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
	for experiment := range notes {
		_, ok := experiments[experiment]
		require.True(t, ok || experiment == "trace", experiment)
	}
}
