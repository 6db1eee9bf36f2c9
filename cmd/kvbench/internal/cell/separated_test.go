package cell

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// large are the settings of a cell with a few megabytes of values that nothing compresses.
func large() Settings {
	s := small()
	s.Keys, s.ValueSize, s.Values, s.Memtable, s.Lookups = "600", 8<<10, RandomValues, 1<<20, 100
	return s
}

// TestSeparatedValuesAreWrittenOnce: a load of them writes a log and a file; to values with their keys,
// compactions add what they write. What the process writes is counted, so that no other test may run meanwhile.
func TestSeparatedValuesAreWrittenOnce(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"siftkv", "pebble"} {
		written := map[int64]float64{}
		for _, from := range []int64{0, 4 << 10, 16 << 10} {
			s := large()
			s.Engine, s.Filter, s.Shape, s.Separate = name, "none", Overwritten+":2", from
			r, err := l.Run(t.Context(), s)
			require.NoError(t, err)
			require.NoError(t, r.Identities.Err())
			require.Equal(t, 1200, r.Build.Rewritten)
			require.EqualValues(t, 3*600*(16+8<<10), r.Build.UserBytes)
			m := r.Metric(StoreKind, "written/user")
			require.False(t, m.Exact)
			require.Equal(t, from == 0, r.Metric(StoreKind, "space-amp") != nil)
			written[from] = m.Value
			require.Greater(t, r.Metric(StoreKind, "disk/live").Value, 0.99)
		}
		require.Less(t, written[4<<10], 0.9*written[0], name)
		require.Greater(t, written[16<<10], 0.9*written[0], "%s: values are smaller than that", name)
		require.Greater(t, written[4<<10], 2.0, name)
	}
	s := large()
	s.Shape = Settled
	r, err := l.Run(t.Context(), s)
	require.NoError(t, err)
	require.Nil(t, r.Metric(StoreKind, "written/user"), "cells as they were before have the metrics that they had")
}

func TestSettingsOfValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want        string
		change      func(s *Settings)
		unsupported bool
	}{
		{"values blue", func(s *Settings) { s.Values = "blue" }, false},
		{"blob-space much", func(s *Settings) { s.Separate, s.BlobSpace = 1, "much" }, false},
		{"blob-space 1", func(s *Settings) { s.Separate, s.BlobSpace = 1, "1" }, false},
		{"blob-space NaN", func(s *Settings) { s.Separate, s.BlobSpace = 1, "nan" }, false},
		{"blob-space 1.3", func(s *Settings) { s.BlobSpace = "1.3" }, true},
		{"separate-from 1", func(s *Settings) { s.Engine, s.Filter, s.Separate = "goleveldb", "own:10", 1 }, true},
		{"at-commit perhaps", func(s *Settings) { s.Separate, s.AtCommit = 1, "perhaps" }, false},
		{"at-commit yes", func(s *Settings) { s.AtCommit = Yes }, true},
		{"at-commit yes", func(s *Settings) {
			s.Engine, s.Filter, s.Separate, s.AtCommit = "pebble", "none", 1, Yes
		}, true},
		{"separate-from -1", func(s *Settings) { s.Separate = -1 }, false},
		{"shape overwritten", func(s *Settings) { s.Shape = Overwritten }, false},
		{"shape overwritten:0", func(s *Settings) { s.Shape = Overwritten + ":0" }, false},
		{"shape overwritten:101", func(s *Settings) { s.Shape = Overwritten + ":101" }, false},
		{"shape", func(s *Settings) { s.Engine, s.Filter, s.Shape = "badger", "own:10", Overwritten+":1" }, true},
	} {
		s := Default()
		c.change(&s)
		err := s.Check()
		require.ErrorIs(t, err, bench.ErrUsage, c.want)
		require.ErrorContains(t, err, c.want)
		if c.unsupported {
			require.ErrorIs(t, err, engine.ErrUnsupported, c.want)
		} else {
			require.NotErrorIs(t, err, engine.ErrUnsupported, c.want)
		}
	}
	s := Default()
	s.Separate, s.BlobSpace = 4096, "1.30"
	require.NoError(t, s.Check())
	require.Equal(t, "1.3", s.BlobSpace)
	require.Contains(t, s.Text(), " separate-from=4096 blob-space=1.3 ")
	require.Contains(t, s.Name(), "apart-4KiB-space-1.3")
	usual := Default()
	require.NotContains(t, usual.Text(), "separate-from", "names of cells stay")
	require.NotContains(t, usual.Text(), "values")
}
