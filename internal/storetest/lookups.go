package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv/metrics"
)

// RequireIdentities requires that the counters of a store's lookups agree with each other.
func RequireIdentities(t testing.TB, m *metrics.Store) {
	t.Helper()
	var hits uint64
	for n := range m.Levels {
		c := m.Levels[n].Lookup
		hits += c.Hits
		wrong := c.FilterRemembered + c.FilterFalsePositives
		require.Equal(t, c.FilterChecks(), c.FilterNegatives+wrong+c.FilterTruePositives)
		require.Equal(t, c.IndexLookups, c.Unfiltered+c.FilterTruePositives+c.FilterFalsePositives)
		require.Equal(t, c.FilesConsidered, c.RuledOutByBounds+c.RuledOutByRangeTombstone+c.FilterChecks()+c.Unfiltered)
		require.GreaterOrEqual(t, c.BlocksFromCache+c.BlocksFromDisk, c.IndexLookups-c.RuledOutByIndex)
	}
	require.LessOrEqual(t, hits+m.MemtableHits, m.Gets)
}
