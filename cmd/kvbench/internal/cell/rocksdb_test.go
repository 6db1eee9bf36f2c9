//go:build rocksdb

package cell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRocksDBCells runs every shape and filter of RocksDB twice: counters of lookups
// are equal.
func TestRocksDBCells(t *testing.T) {
	for _, tc := range []struct{ filter, shape, state string }{
		{"none", Settled, Warm}, {"own:10", Young + ":3", Warm}, {"ribbon:10", Grown, Warm}, {"bloom:10", Grown, Cold},
	} {
		s := small()
		s.Engine, s.Filter, s.Shape, s.State = "rocksdb", tc.filter, tc.shape, tc.state
		var rates [][2]float64
		for range 2 {
			r, err := newLab(t).Run(t.Context(), s)
			require.NoError(t, err)
			require.NoError(t, r.Identities.Err())
			require.Equal(t, tc.shape == Settled, r.Build.Settled)
			require.Positive(t, r.Metric(StoreKind, "write-amp").Value)
			rates = append(rates, [2]float64{r.Metric("absent", "blocks/op").Value,
				r.Metric("existing", "blocks/op").Value})
		}
		require.Equal(t, rates[0], rates[1], "%s %s", tc.filter, tc.shape)
	}
}
