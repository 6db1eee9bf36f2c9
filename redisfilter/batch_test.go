package redisfilter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// One batch, and one load, of many times the keys of the first layer make the layers that they need.
func TestABatchGrowsASetAsItGoes(t *testing.T) {
	t.Parallel()
	const n = 30_000
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Append(nil, "key", i)
	}
	source := func(_ context.Context, _ time.Time, add func(...[]byte) error) error { return add(keys...) }
	c := openClient(t, redistest.Start(t).Addr)
	for name, o := range map[string]Options{
		"batch":      {Growth: 10, StartEmpty: true},
		"partitions": {Growth: 10, StartEmpty: true, Partitions: 5},
		"load":       {Growth: 10, Source: source, Grace: time.Millisecond},
	} {
		s := openSet(t, c, name, 300, o)
		require.NoError(t, s.Ready(t.Context()), name)
		if o.Source == nil {
			require.NoError(t, s.MAdd(t.Context(), keys), name)
		}
		info, err := s.Info(t.Context())
		require.NoError(t, err, name)
		require.LessOrEqual(t, info.FalsePositiveRate, 0.01, "%s: %+v", name, info)
		require.InDelta(t, n, info.Keys, n/20, name)
		maybe, err := s.MContains(t.Context(), keys)
		require.NoError(t, err, name)
		require.NotContains(t, maybe, false, name)
	}
}
