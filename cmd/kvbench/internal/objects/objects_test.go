package objects

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/sstable"
)

func testConfig(t *testing.T) *Config {
	return &Config{
		Settings: Settings{
			Filters: []string{"none", "blocked:10"}, Caches: []int64{0, 64 << 20}, Keys: 7000, KeySize: 16,
			ValueSize: 100, TargetFile: 16 << 10, Compression: "none", Young: 4, Lookups: 500, Repetitions: 3,
			Memory: 0, Delay: time.Millisecond, GetPrice: 0.4, PutPrice: 5, Seed: 3,
		},
		Dir: t.TempDir(), InMemory: true, Progress: progress.New(io.Discard, "none"),
	}
}

func TestWhatAStoreCosts(t *testing.T) {
	c := testConfig(t)
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "memory", r.Origin)
	require.Len(t, r.Rows, 8)
	row := func(filter, shape string, cache int64) *Row {
		for i := range r.Rows {
			if one := &r.Rows[i]; one.Filter == filter && one.Shape == shape && one.Cache == cache {
				return one
			}
		}
		require.Fail(t, "no row", "%s %s %d", filter, shape, cache)
		return nil
	}
	perLookup := func(c Cost) float64 { return float64(c.Traffic.Gets) / float64(c.Lookups) }

	none, filtered := row("none", Settled, 0), row("blocked:10", Settled, 0)
	require.Greater(t, none.Files, 20)
	require.Equal(t, 1, none.Runs)
	require.InDelta(t, 1, perLookup(none.Absent), 0.05, "a key between two files costs nothing")
	require.Less(t, perLookup(filtered.Absent), 0.03)
	require.Greater(t, filtered.Absent.Lookups, 10*c.Lookups, "until there were as many requests")
	for _, one := range []*Row{none, filtered} {
		require.EqualValues(t, c.Lookups, one.Present.Traffic.Gets)
		require.EqualValues(t, c.Lookups, one.Zipfian.Traffic.Gets)
		require.Greater(t, one.Present.Traffic.BytesReceived, int64(c.Lookups*c.ValueSize))
		require.InDelta(t, 400, one.Present.DollarsPerMillion, 1e-9)
	}
	require.InDelta(t, 10, filtered.BitsPerKey, 4, "a small filter is rounded up to lines")

	none, filtered = row("none", Young, 0), row("blocked:10", Young, 0)
	require.Equal(t, 5, none.Runs)
	require.Greater(t, perLookup(none.Absent), 4.0, "every young file is asked")
	require.Less(t, perLookup(filtered.Absent), 0.2)
	require.Greater(t, perLookup(none.Present), perLookup(filtered.Present))
	for _, shape := range []string{Settled, Young} {
		require.Zero(t, row("none", shape, 64<<20).Present.Traffic.Gets, "every block is cached")
	}
}

func TestWhatOperationsCost(t *testing.T) {
	c := testConfig(t)
	c.Caches, c.Lookups = []int64{0}, 10
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "blocked:10", r.Operator, "the first that is a filter")
	ops := map[string]Operation{}
	for _, op := range r.Operations {
		ops[op.Shape+" "+op.Name] = op
		require.LessOrEqual(t, op.RoundTrips, float64(op.MostRoundTrips), op.Name)
		t.Logf("%+v", op)
	}
	require.Len(t, ops, 2+2*6+4)
	require.EqualValues(t, 4, ops["settled "+FlushFile].Operations)
	flush := ops["settled "+FlushFile].Traffic
	require.Zero(t, flush.Gets+flush.Lists)
	require.GreaterOrEqual(t, flush.Puts, int64(2*c.Young), "the file, and the list of files")
	require.Greater(t, flush.BytesSent, int64(c.Young*c.Keys/youngPart*c.ValueSize))
	write := ops["young "+SyncWrite]
	require.Equal(t, int64(c.Repetitions), write.Traffic.Puts)
	require.InDelta(t, 5000, write.DollarsPerMillion, 1e-9)
	require.InDelta(t, 1, write.RoundTrips, 1e-9)
	local := ops["young "+LocalWrite]
	require.Equal(t, c.Repetitions, local.Operations)
	require.Equal(t, Traffic{}, local.Traffic)
	together := ops["young "+SyncTogether]
	require.Equal(t, 16*c.Repetitions, together.Operations)
	require.LessOrEqual(t, together.Traffic.Puts, int64(together.Operations))
	require.Zero(t, ops["young "+IdleWriter].DollarsPerMillion)
	for _, shape := range []string{Settled, Young} {
		get := func(name string) Operation { return ops[shape+" "+name] }
		require.GreaterOrEqual(t, get(OpenWriter).Traffic.Gets, int64(get(OpenWriter).Files))
		require.Positive(t, get(OpenWriter).Traffic.Puts)
		require.Zero(t, get(OpenView).Traffic.Puts)
		require.GreaterOrEqual(t, get(Poll).Traffic.Gets, int64(c.Repetitions))
		require.GreaterOrEqual(t, get(WholeScan).Traffic.Gets, int64(get(WholeScan).Files))
		require.Positive(t, get(Scan).Traffic.Gets)
	}
	multi := ops["settled "+MultiGet]
	require.LessOrEqual(t, multi.Traffic.Gets, int64(multiKeys*c.Repetitions*11/10))
	require.GreaterOrEqual(t, multi.RoundTrips, 1.0)
	require.Less(t, multi.RoundTrips, float64(multiKeys), "requests go side by side")
}

// Filters that memory leaves no room for cost requests.
func TestAShortMemory(t *testing.T) {
	scale.OneGoroutine(t, "a count of requests")
	c := testConfig(t)
	c.Filters, c.Caches, c.Keys, c.Memory, c.Repetitions = []string{"none", "blocked:32"}, []int64{0}, 100_000, 4<<20, 1
	c.TargetFile, c.Lookups = 256<<10, 200
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Rows, 6, "a store without filters has none to leave out")
	all, short := r.Rows[2], r.Rows[3]
	require.False(t, all.Limited)
	require.Equal(t, "none", all.CacheText())
	require.True(t, short.Limited)
	require.Equal(t, "short", short.CacheText())
	require.Zero(t, all.FiltersSkipped)
	require.Positive(t, short.FiltersSkipped)
	require.Greater(t, short.Absent.DollarsPerMillion, 10*all.Absent.DollarsPerMillion)
}

// closing is an object store that knows whether it was closed.
type closing struct {
	objstore.Store
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestAnObjectStoreIsHandedIn(t *testing.T) {
	c := testConfig(t)
	c.Filters, c.Caches, c.Lookups, c.Repetitions = []string{"none"}, []int64{0}, 10, 1
	given := &closing{Store: objstore.NewMem()}
	c.Open = func() (objstore.Store, error) { return given, nil }
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "handed in", r.Origin)
	require.Equal(t, "none", r.Operator)
	require.True(t, given.closed)
	for o, err := range given.List(t.Context(), "", "") {
		require.NoError(t, err)
		require.Failf(t, "an object is left", "%s", o.Key)
	}
	require.Greater(t, r.Requests.Deletes, int64(20))
	c.Open = func() (objstore.Store, error) { return nil, objstore.ErrThrottled }
	_, err = Run(t.Context(), c)
	require.ErrorIs(t, err, objstore.ErrThrottled)
}

func TestWrongAnswersEndARun(t *testing.T) {
	c := testConfig(t)
	x := &experiment{Config: c, compression: sstable.Snappy, result: &Result{}}
	var err error
	x.source, err = keys.NewGenerated(c.Keys, c.KeySize, c.Seed)
	require.NoError(t, err)
	x.values, err = keys.NewValues(c.ValueSize, c.Seed)
	require.NoError(t, err)
	require.NoError(t, x.open(""))
	policy, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	s := &store{x: x, policy: policy, shape: Settled, objects: x.objects}
	require.NoError(t, s.load(t.Context(), false))
	require.NoError(t, s.rows(t.Context()))
	require.NoError(t, s.operations(t.Context()))
	require.ErrorIs(t, x.check([]byte("key"), []byte{}, false), bench.ErrWrongAnswer)
	require.ErrorIs(t, x.check([]byte("key"), nil, true), bench.ErrWrongAnswer)

	s.shape = Young
	require.ErrorIs(t, s.rows(t.Context()), bench.ErrIdentity)
	s.shape = Settled
	x.values, err = keys.NewValues(c.ValueSize, c.Seed+1)
	require.NoError(t, err)
	require.ErrorIs(t, s.rows(t.Context()), bench.ErrWrongAnswer)
	require.ErrorIs(t, s.operations(t.Context()), bench.ErrWrongAnswer)
}

func TestBadSettingsAreUsage(t *testing.T) {
	for flag, change := range map[string]func(*Config){
		"--filter":      func(c *Config) { c.Filters = []string{"sieve:10"} },
		"--cache":       func(c *Config) { c.Caches = []int64{1} },
		"--keys":        func(c *Config) { c.Keys = 99 },
		"--young":       func(c *Config) { c.Young = 0 },
		"--target-file": func(c *Config) { c.TargetFile = 1 },
		"--lookups":     func(c *Config) { c.Lookups = 0 },
		"--reps":        func(c *Config) { c.Repetitions = 0 },
		"--delay":       func(c *Config) { c.Delay = 0 },
		"--memory":      func(c *Config) { c.Memory = 1 },
		"--get-price":   func(c *Config) { c.GetPrice = -1 },
		"--compression": func(c *Config) { c.Compression = "lz4" },
		"keys of":       func(c *Config) { c.KeySize = 1 },
		"values of":     func(c *Config) { c.ValueSize = 1 },
		"--dir":         func(c *Config) { c.Dir = "/nothing/here" },
	} {
		c := testConfig(t)
		change(c)
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, bench.ErrUsage, flag)
		require.ErrorContains(t, err, flag)
	}
}

func TestARunIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, testConfig(t))
	require.ErrorIs(t, err, context.Canceled)
}
