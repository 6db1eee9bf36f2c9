package report

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// TestServiceTimesAreShownAtARate has times that do not tell whether there was a rate: equal ones with it, and others
// without.
func TestServiceTimesAreShownAtARate(t *testing.T) {
	for _, tc := range []struct{ rate, service float64 }{{0, 1}, {0, 2}, {1000, 1}, {1000, 2}} {
		r := tidy.New("ycsb", "", ycsb.Settings{Rate: tc.rate}, sample()[0].Environment)
		of := ycsb.Cell("siftkv", "a").With("operation", "read")
		for _, metric := range []string{"mean", "p50", "p99"} {
			r.Add(of, metric, "ns", 1)
			r.Add(of, "service "+metric, "ns", tc.service)
		}
		data, err := json.Marshal(r)
		require.NoError(t, err)
		read := new(tidy.Result)
		require.NoError(t, json.Unmarshal(data, read))
		for _, r := range []*tidy.Result{r, read} {
			require.Equal(t, tc.rate > 0, slices.Contains(names(TidyGrids(r)[0]), "service\np50"), tc)
		}
	}
}
