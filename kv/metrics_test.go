package kv

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunMetricsAddUp holds the figures of all runs against those of their levels.
func TestRunMetricsAddUp(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := openDir(t, "db", tieredOptions(kind))
		rng := rand.New(rand.NewPCG(1, 1))
		several := false
		for range 12 {
			fill(t, db, model{}, rng, 3, 1_000_000)
			settleStore(t, db)
			m := db.Metrics()
			var levels [NumLevels]LevelMetrics
			for i, r := range m.Runs {
				if i > 0 {
					require.GreaterOrEqual(t, r.Level, m.Runs[i-1].Level, "young levels are asked first")
				}
				l := &levels[r.Level]
				l.Runs++
				l.Files += r.Files
				l.Bytes += r.Bytes
				l.Entries += r.Entries
				l.FilterBytes += r.FilterBytes
				several = several || r.Level > 0 && l.Runs > 1
			}
			for n, l := range m.Levels {
				require.Equal(t, LevelMetrics{Files: l.Files, Runs: l.Runs, Bytes: l.Bytes, Entries: l.Entries,
					FilterBytes: l.FilterBytes}, levels[n])
			}
		}
		require.Equal(t, kind != Leveled, several)
		require.NoError(t, db.Close())
	})
}

// TestMetricsOfPresentKeys counts what lookups of keys that are there cost.
func TestMetricsOfPresentKeys(t *testing.T) {
	db := settledStore(t, 5000, nil)
	before := db.Metrics()
	for i := range 5000 {
		_, err := db.Get(settledKey(i))
		require.NoError(t, err)
	}
	m := db.Metrics().Sub(before)
	c := m.Lookup()
	require.EqualValues(t, 5000, c.Hits)
	require.EqualValues(t, 5000, c.FilterTruePositives)
	require.EqualValues(t, 5000, c.BlocksFromCache)
	require.Zero(t, c.BlocksFromDisk+c.BytesFromDisk+c.FilterFalsePositives+m.MemtableHits)
	require.EqualValues(t, 5000, m.Levels[lastLevel].Entries)
	checkIdentities(t, m)
	require.EqualValues(t, 5000, before.Writes)
	require.Zero(t, m.Writes)
	set(t, db, "key/new", "1")
	_, err := db.Get([]byte("key/new"))
	require.NoError(t, err)
	require.EqualValues(t, 1, db.Metrics().Sub(before).MemtableHits)
}
