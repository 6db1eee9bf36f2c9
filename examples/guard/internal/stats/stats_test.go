package stats_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter"

	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

func TestSnapshot(t *testing.T) {
	c := stats.New()
	c.Request(200, time.Millisecond)
	c.Request(404, 2*time.Millisecond)
	c.Request(404, 3*time.Millisecond)
	c.Users.Answered(false, nil)
	c.Users.Answered(true, nil)
	c.Users.Answered(true, errors.New("away"))
	c.Cache.NullHits.Add(4)
	c.Database.Empty.Add(5)
	c.Database.Shed.Add(6)
	c.Database.Waiting.Add(7)
	s := c.Snapshot()
	require.EqualValues(t, 3, s.Requests)
	require.Equal(t, map[int]uint64{200: 1, 404: 2}, s.Status)
	require.Equal(t, stats.FilterSnapshot{Asked: 3, No: 1, Maybe: 2, Errors: 1}, s.Users)
	require.Equal(t, stats.CacheSnapshot{NullHits: 4}, s.Cache)
	require.Equal(t, stats.DatabaseSnapshot{Empty: 5, Shed: 6, Waiting: 7}, s.Database)
	require.EqualValues(t, 3, s.Latency.Count)
	require.EqualValues(t, 6000, s.Latency.Sum)

	c.Request(500, time.Second)
	require.EqualValues(t, 3, s.Requests, "a snapshot does not change")
	require.NotContains(t, s.Status, 500)

	text, err := json.Marshal(s)
	require.NoError(t, err)
	var again stats.Snapshot
	require.NoError(t, json.Unmarshal(text, &again))
	s.Time, again.Time = time.Time{}, time.Time{}
	require.Equal(t, s, again)
}

// Quantiles lie above the time that they are of, by 7 % at most.
func TestLatencyQuantiles(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(1, 10_000_000), 1, 100).Draw(t, "microseconds")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		h := stats.NewHistogram()
		for _, us := range times {
			h.Record(time.Duration(us) * time.Microsecond)
		}
		slices.Sort(times)
		rank := 0
		for float64(rank+1) < q*float64(len(times)) {
			rank++
		}
		got := h.Snapshot().Quantile(q)
		require.GreaterOrEqual(t, got, times[rank])
		require.LessOrEqual(t, float64(got), 1.07*float64(times[rank])+1)
	})
}

func TestLatencySince(t *testing.T) {
	h := stats.NewHistogram()
	h.Record(time.Millisecond)
	h.Record(time.Hour)
	before := h.Snapshot()
	require.Equal(t, stats.Latency{Bars: map[int64]uint64{}}, before.Since(before))
	for range 10 {
		h.Record(time.Millisecond)
	}
	d := h.Snapshot().Since(before)
	require.EqualValues(t, 10, d.Count)
	require.EqualValues(t, 10_000, d.Sum)
	require.Len(t, d.Bars, 1)
	require.Equal(t, d.Max, d.P50)
	require.InEpsilon(t, 1000, d.P99, 0.07)
	require.Zero(t, stats.Latency{}.Quantile(0.5))
}

func TestMetrics(t *testing.T) {
	c := stats.New()
	c.Request(200, 150*time.Microsecond)
	c.Request(404, time.Minute)
	c.Users.Answered(false, nil)
	c.Database.Running.Add(2)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.Collector())
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
	require.Equal(t, 8, count)
}

// Every number of a set is told, under a name of its own.
func TestMetricsOfSets(t *testing.T) {
	t.Parallel()
	users := redisfilter.Metrics{
		Loaded: true, Capacity: 2, Lookups: 3, Absent: 4, Unsure: 5, Adds: 6, Failed: 7, Refused: 8, Losses: 9,
		Loads: 10, FailedLoads: 11,
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(stats.New().Collector(), stats.Sets(map[string]func() redisfilter.Metrics{
		"users":  func() redisfilter.Metrics { return users },
		"banned": func() redisfilter.Metrics { return redisfilter.Metrics{Loading: true, Full: true} },
	}))
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
		"loaded": 1, "loading": 0, "full": 0, "capacity": 2, "lookups_total": 3, "absent_total": 4, "unsure_total": 5,
		"adds_total": 6, "failed_adds_total": 7, "refused_adds_total": 8, "losses_total": 9, "loads_total": 10,
		"failed_loads_total": 11,
	}, told["users"])
	require.Len(t, told["users"], reflect.TypeFor[redisfilter.Metrics]().NumField())
	require.InDelta(t, 0, told["banned"]["loaded"], 0)
	require.InDelta(t, 1, told["banned"]["loading"], 0)
	require.InDelta(t, 1, told["banned"]["full"], 0)
}
