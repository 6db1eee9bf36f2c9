package tidy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowsAreFoundByTheirCells(t *testing.T) {
	r := &Result{}
	small, large := Of("engine", "siftkv", "keys", 10), Of("engine", "siftkv", "keys", 200)
	r.Add(small, "absent", "ns", 1, 3)
	r.Add(large, "absent", "ns", 2)
	r.Add(large.With("tree", "settled"), "absent", "ns", 7)
	r.Add(small, "files", "", 5)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	read := new(Result)
	require.NoError(t, json.Unmarshal(data, read))
	for _, r := range []*Result{r, read} {
		require.Equal(t, []Cell{small, large}, r.Cells("keys", "engine"))
		require.Equal(t, []float64{1, 3}, r.Values(small, "absent"))
		require.Equal(t, []float64{7}, r.Values(Of("tree", "settled", "engine", "siftkv", "keys", 200), "absent"))
		require.Empty(t, r.Values(large, "files"))
		require.Equal(t, []string{"10", "200"}, r.Each("keys"))
	}
	require.Len(t, large, 2, "With makes another cell")
	var out strings.Builder
	require.NoError(t, r.WriteCSV(&out))
	require.Equal(t, `engine,keys,tree,metric,repetition,value,unit
siftkv,10,,absent,0,1,ns
siftkv,10,,absent,1,3,ns
siftkv,200,,absent,0,2,ns
siftkv,200,settled,absent,0,7,ns
siftkv,10,,files,0,5,
`, out.String())
}

func TestAResultOutlivesADirectoryThatIsNotRemoved(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "parent")
	require.NoError(t, os.Mkdir(parent, 0o700))
	r, err := Measure("x", "about", nil, nil, parent, func(r *Result, _ string) error {
		r.Add(Cell{}, "n", "", 1)
		require.NoError(t, os.Rename(parent, parent+"-moved"))
		return os.WriteFile(parent, nil, 0o600)
	})
	require.Error(t, err)
	require.Len(t, r.Rows, 1)
}
