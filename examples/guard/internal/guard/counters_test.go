package guard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
)

func TestLayers(t *testing.T) {
	c := NewCounters()
	c.request("200", time.Millisecond)
	c.request("404", 2*time.Millisecond)
	c.Users.answered(false, nil)
	c.Names.answered(true, nil)
	c.Banned.answered(true, errors.New("away"))
	c.Cache.answered(true, true, nil)
	c.Cache.answered(false, true, nil)
	c.Cache.answered(false, false, errors.New("away"))
	c.Database.Queries.Add(7)
	c.Database.Empty.Add(5)
	c.Database.Shed.Add(6)
	require.Equal(t, Layers{
		Requests: 2, Filter: 3, FilterNo: 1, Cache: 3, CacheHits: 2, Queries: 7, Empty: 5, Shed: 6,
	}, c.Layers())
	require.EqualValues(t, 1, c.Banned.Errors.Load())
	require.EqualValues(t, 1, c.Cache.Errors.Load())
}

func TestMetrics(t *testing.T) {
	c := NewCounters()
	c.request("200", 150*time.Microsecond)
	c.request("404", time.Minute)
	c.Users.answered(false, nil)
	c.Database.Running.Add(2)
	registry := prometheus.NewPedanticRegistry()
	c.Register(registry, nil)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "guard_request_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			require.EqualValues(t, 2, h.GetSampleCount())
			require.InEpsilon(t, 60, h.GetSampleSum(), 0.01)
			require.Zero(t, h.GetBucket()[0].GetCumulativeCount(), "0.1 ms")
			require.EqualValues(t, 1, h.GetBucket()[1].GetCumulativeCount(), "0.2 ms")
			require.EqualValues(t, 1, h.GetBucket()[len(h.GetBucket())-1].GetCumulativeCount(), "5 s")
		}
	}
	count, err := testutil.GatherAndCount(registry, "guard_filter_answers_total")
	require.NoError(t, err)
	require.Equal(t, 6, count)
}

func TestMetricsOfSets(t *testing.T) {
	t.Parallel()
	users := redisfilter.Metrics{Loaded: true, Capacity: 2, Losses: 9, FailedLoads: 11}
	registry := prometheus.NewPedanticRegistry()
	NewCounters().Register(registry, map[string]func() redisfilter.Metrics{
		"users":  func() redisfilter.Metrics { return users },
		"banned": func() redisfilter.Metrics { return redisfilter.Metrics{Loading: true, Full: true} },
	})
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	families, err := registry.Gather()
	require.NoError(t, err)
	told := map[string]map[string]float64{"users": {}, "banned": {}}
	for _, f := range families {
		if name, ok := strings.CutPrefix(f.GetName(), "guard_set_"); ok {
			for _, m := range f.GetMetric() {
				told[m.GetLabel()[0].GetValue()][name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{
		"loaded": 1, "loading": 0, "full": 0, "capacity": 2, "losses_total": 9, "failed_loads_total": 11,
	}, told["users"])
	require.InDelta(t, 0, told["banned"]["loaded"], 0)
	require.InDelta(t, 1, told["banned"]["loading"], 0)
	require.InDelta(t, 1, told["banned"]["full"], 0)
}
