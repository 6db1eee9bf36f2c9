package cell

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

func TestTheTimelineShowsTheBuild(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ engine, filter, shape string }{
		{"null", "none", Settled},
		{"siftkv", "bloom:10", Settled},
		{"siftkv", "bloom:10", Grown},
		{"pebble", "own:10", Grown},
		{"goleveldb", "own:10", Settled},
	} {
		s := small()
		s.Engine, s.Filter, s.Shape = tc.engine, tc.filter, tc.shape
		r, err := newLab(t).Run(t.Context(), s)
		require.NoError(t, err)
		if tc.engine == "null" {
			require.Nil(t, r.Build.Timeline)
			continue
		}
		line := r.Build.Timeline
		writes := int64(0)
		for _, n := range line.Operations {
			writes += n
		}
		require.EqualValues(t, r.Keys.Present+r.Build.Rewritten, writes, "%+v: every write is in it", tc)
		require.GreaterOrEqual(t, line.Interval*float64(len(line.Operations)+1), r.Build.LoadSeconds)
		kinds, bytes := map[engine.BackgroundKind]int{}, map[engine.BackgroundKind]int64{}
		for _, e := range line.Events {
			kinds[e.Kind]++
			bytes[e.Kind] += e.Bytes
			require.LessOrEqual(t, e.From, e.To)
			require.True(t, e.Kind != engine.Compaction || e.OutputLevel > 0)
		}
		if tc.engine == "goleveldb" {
			require.Empty(t, line.Events, "it tells nothing")
			continue
		}
		require.Positive(t, kinds[engine.Flush], "%+v", tc)
		require.Positive(t, kinds[engine.Compaction], "%+v", tc)
		require.EqualValues(t, r.Build.Usage.Flushed, bytes[engine.Flush],
			"%+v: the flushes are those that the engine counts", tc)
		require.EqualValues(t, r.Build.Usage.Compacted, bytes[engine.Compaction], "%+v", tc)
	}
}
