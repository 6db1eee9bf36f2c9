package objects

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
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
	require.Contains(t, r.About, "(memory)")
	require.Contains(t, r.Notes[0], "$0.4 per 1,000 GET, $5 per 1,000 PUT and LIST")
	require.Len(t, r.Cells("filter", "shape", "cache"), 8)
	get := func(filter, shape, cache, metric string) float64 {
		return one(t, r, LookupCell(filter, shape, cache), metric)
	}
	require.Greater(t, get("none", Settled, "none", "files"), 20.0)
	require.InDelta(t, 1, get("none", Settled, "none", "runs"), 0)
	require.InDelta(t, 1, get("none", Settled, "none", "absent gets"), 0.05, "a key between two files costs nothing")
	require.Less(t, get("blocked:10", Settled, "none", "absent gets"), 0.03)
	require.Greater(t, get("blocked:10", Settled, "none", "absent lookups"), 10*float64(c.Lookups),
		"until there were as many requests")
	for _, filter := range c.Filters {
		require.InDelta(t, c.Lookups, get(filter, Settled, "none", "present lookups"), 0)
		require.InDelta(t, 1, get(filter, Settled, "none", "present gets"), 0)
		require.InDelta(t, 1, get(filter, Settled, "none", "zipfian gets"), 0)
		require.Greater(t, get(filter, Settled, "none", "present received"), float64(c.ValueSize))
		require.InDelta(t, 400, get(filter, Settled, "none", "present dollars"), 1e-9)
	}
	require.InDelta(t, 10, get("blocked:10", Settled, "none", "filters"), 4, "a small filter is rounded up to lines")

	require.InDelta(t, 5, get("none", Young, "none", "runs"), 0)
	require.Greater(t, get("none", Young, "none", "absent gets"), 4.0, "every young file is asked")
	require.Less(t, get("blocked:10", Young, "none", "absent gets"), 0.2)
	require.Greater(t, get("none", Young, "none", "present gets"), get("blocked:10", Young, "none", "present gets"))
	for _, shape := range []string{Settled, Young} {
		require.Zero(t, get("none", shape, "64 MiB", "present gets"), "every block is cached")
	}
}

// one returns the only value of a metric of a cell.
func one(t *testing.T, r *tidy.Result, of tidy.Cell, metric string) float64 {
	t.Helper()
	all := r.Values(of, metric)
	require.Len(t, all, 1, "%v %s", of, metric)
	return all[0]
}

// TestTheFirstLineFitsATerminal has the largest numbers that are usual.
func TestTheFirstLineFitsATerminal(t *testing.T) {
	c := testConfig(t)
	c.Keys, c.ValueSize, c.TargetFile, c.Young, c.Seed = 1<<28, 10_000, 1e9, 64, 1_000_000
	c.GetPrice, c.PutPrice = 0.00041, 0.0051
	require.LessOrEqual(t, len(c.about("directory")), 160)
}

// TestEachCacheIsACell has caches that are about 1.5 MiB.
func TestEachCacheIsACell(t *testing.T) {
	for bytes, want := range map[int64]string{shortMemory: "short", 0: "none", 64 << 20: "64 MiB", 3 << 19: "1.5 MiB",
		1_600_000: "1,600,000 B", 1_610_000: "1,610,000 B", 1 << 16: "64 KiB", 1<<30 + 1: "1,073,741,825 B"} {
		require.Equal(t, want, cacheText(bytes))
	}
	c := testConfig(t)
	c.Filters, c.Caches, c.Lookups, c.Repetitions = []string{"none"}, []int64{1_600_000, 1_610_000}, 10, 1
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Cells("filter", "shape", "cache"), 4)
	one(t, r, LookupCell("none", Settled, "1,600,000 B"), "files")
}

func TestWhatOperationsCost(t *testing.T) {
	c := testConfig(t)
	c.Caches, c.Lookups = []int64{0}, 10
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	all := r.Cells("operation", "shape", "filter")
	require.Len(t, all, 2+2*6+4)
	for _, of := range all {
		require.Equal(t, "blocked:10", of["filter"], "the first that is a filter")
		require.LessOrEqual(t, one(t, r, of, "trips"), one(t, r, of, "most-trips"), of["operation"])
	}
	get := func(shape, name, metric string) float64 {
		return one(t, r, OperationCell(name, shape, "blocked:10"), metric)
	}
	require.InDelta(t, 4, get(Settled, FlushFile, "times"), 0)
	require.Zero(t, get(Settled, FlushFile, "gets")+get(Settled, FlushFile, "lists"))
	require.GreaterOrEqual(t, get(Settled, FlushFile, "puts"), 2.0, "the file, and the list of files")
	require.Greater(t, get(Settled, FlushFile, "sent"), float64(c.Keys/youngPart*c.ValueSize))
	require.InDelta(t, 1, get(Young, SyncWrite, "puts"), 1e-9)
	require.InDelta(t, 5000, get(Young, SyncWrite, "dollars"), 1e-9)
	require.InDelta(t, 1, get(Young, SyncWrite, "trips"), 1e-9)
	require.InDelta(t, c.Repetitions, get(Young, LocalWrite, "times"), 0)
	for _, metric := range []string{"gets", "puts", "lists", "deletes", "received", "sent"} {
		require.Zero(t, get(Young, LocalWrite, metric), metric)
	}
	require.InDelta(t, 16*c.Repetitions, get(Young, SyncTogether, "times"), 0)
	require.LessOrEqual(t, get(Young, SyncTogether, "puts"), 1.0)
	require.Zero(t, get(Young, IdleWriter, "dollars"))
	for _, shape := range []string{Settled, Young} {
		require.GreaterOrEqual(t, get(shape, OpenWriter, "gets"), get(shape, OpenWriter, "files"))
		require.Positive(t, get(shape, OpenWriter, "puts"))
		require.Zero(t, get(shape, OpenView, "puts"))
		require.GreaterOrEqual(t, get(shape, Poll, "gets"), 1.0)
		require.GreaterOrEqual(t, get(shape, WholeScan, "gets"), get(shape, WholeScan, "files"))
		require.Positive(t, get(shape, Scan, "gets"))
	}
	require.LessOrEqual(t, get(Settled, MultiGet, "gets"), multiKeys*1.1)
	require.GreaterOrEqual(t, get(Settled, MultiGet, "trips"), 1.0)
	require.Less(t, get(Settled, MultiGet, "trips"), float64(multiKeys), "requests go side by side")
	require.Contains(t, strings.Join(r.Notes, "\n"), "a view that polls each second costs $")
}

// Filters that memory leaves no room for cost requests.
func TestAShortMemory(t *testing.T) {
	scale.OneGoroutine(t, "a count of requests")
	c := testConfig(t)
	c.Filters, c.Caches, c.Keys, c.Memory, c.Repetitions = []string{"none", "blocked:32"}, []int64{0}, 100_000, 4<<20, 1
	c.TargetFile, c.Lookups = 256<<10, 200
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, r.Cells("filter", "shape", "cache"), 6, "a store without filters has none to leave out")
	get := func(cache, metric string) float64 { return one(t, r, LookupCell("blocked:32", Settled, cache), metric) }
	require.Zero(t, get("none", "filters-skipped"))
	require.Positive(t, get("short", "filters-skipped"))
	require.Greater(t, get("short", "absent dollars"), 10*get("none", "absent dollars"))
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
	require.Contains(t, r.About, "(handed in)")
	require.Equal(t, "none", r.Cells("operation", "shape", "filter")[0]["filter"])
	require.True(t, given.closed)
	for o, err := range given.List(t.Context(), "", "") {
		require.NoError(t, err)
		require.Failf(t, "an object is left", "%s", o.Key)
	}
	require.Greater(t, one(t, r, tidy.Of("operation", "the whole run"), "deletes"), 20.0)
	c.Open = func() (objstore.Store, error) { return nil, objstore.ErrThrottled }
	_, err = Run(t.Context(), c)
	require.ErrorIs(t, err, objstore.ErrThrottled)
}

func TestWrongAnswersEndARun(t *testing.T) {
	c := testConfig(t)
	x := &experiment{Config: c, compression: sstable.Snappy, result: &tidy.Result{}}
	var err error
	x.source, err = keys.NewGenerated(c.Keys, c.KeySize, c.Seed)
	require.NoError(t, err)
	x.values, err = keys.NewValues(c.ValueSize, c.Seed)
	require.NoError(t, err)
	_, err = x.open("")
	require.NoError(t, err)
	policy, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	s := &store{x: x, policy: policy, shape: Settled, objects: x.objects}
	require.NoError(t, s.load(t.Context()))
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
		"--filter": func(c *Config) { c.Filters = []string{"sieve:10"} },
		"--cache":  func(c *Config) { c.Caches = []int64{1} },
		"--keys":   func(c *Config) { c.Keys = 99 },

		"--filter: xor:8 is given twice": func(c *Config) { c.Filters = []string{"xor:8", "xor:8"} },
		"--cache: 0 is given twice":      func(c *Config) { c.Caches = []int64{0, 0} },
		"--young":                        func(c *Config) { c.Young = 0 },
		"--target-file":                  func(c *Config) { c.TargetFile = 1 },
		"--lookups":                      func(c *Config) { c.Lookups = 0 },
		"--reps":                         func(c *Config) { c.Repetitions = 0 },
		"--delay":                        func(c *Config) { c.Delay = 0 },
		"--memory":                       func(c *Config) { c.Memory = 1 },
		"--get-price":                    func(c *Config) { c.GetPrice = -1 },
		"--compression":                  func(c *Config) { c.Compression = "lz4" },
		"keys of":                        func(c *Config) { c.KeySize = 1 },
		"values of":                      func(c *Config) { c.ValueSize = 1 },
		"--dir":                          func(c *Config) { c.Dir = "/nothing/here" },
		"choose fewer keys":              func(c *Config) { c.Keys, c.ValueSize, c.InMemory = 1<<28, 1<<20, false },
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
