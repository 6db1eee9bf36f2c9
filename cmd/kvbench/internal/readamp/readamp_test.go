package readamp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A trial is a config with the lab that it is run in.
type trial struct {
	Config
	dir  string
	wrap func(string, engine.Store) engine.Store
}

// run runs it in a lab of its own.
func (c *trial) run(ctx context.Context) ([]*cell.Result, error) {
	lab, err := cell.NewLab(c.dir, []string{"kvbench"}, progress.New(io.Discard, "none"))
	if err != nil {
		return nil, err
	}
	lab.Wrap = c.wrap
	set, err := Run(ctx, lab, &c.Config)
	return set, errors.Join(err, lab.Close())
}

// set sets a setting of all cells.
func (c *trial) set(name, value string) *trial {
	c.Settings[name] = []string{value}
	return c
}

// small is a run of a second or less.
func small(t *testing.T) *trial {
	t.Helper()
	return &trial{dir: t.TempDir(), Config: Config{Filters: []string{"none", "blocked:10"}, Engines: Engines(),
		Settings: sweep.Block{"keys": {"2000"}, "lookups": {"500"}, "reps": {"2"}, "cache": {"1MiB"},
			"memtable": {"1MiB"}}}}
}

// identities returns what is checked of all cells.
func identities(set []*cell.Result) *measure.Identities {
	sum := new(measure.Identities)
	for _, r := range set {
		sum.Add(&r.Identities)
	}
	return sum
}

func TestRunMeasuresEveryRow(t *testing.T) {
	c := small(t)
	set, err := c.run(t.Context())
	require.NoError(t, err)
	names := make([]string, len(set))
	for i, r := range set {
		names[i] = r.Name
	}
	want := []string{
		"null", "siftkv none", "siftkv blocked:10",
		"pebble none", "pebble bloom(10)", "pebble iterator bloom(10)", "pebble siftkv blocked:10",
	}
	if engine.HasRocksDB() {
		want = append(want, "rocksdb none", "rocksdb bloom:10", "rocksdb ribbon:10")
	}
	require.Equal(t, want, names)
	require.Equal(t, set[4].Build, set[5].Build, "the iterator shares the store of Get")
	for _, r := range set {
		for _, kind := range engine.Kinds {
			p := r.Phase(kind)
			require.Len(t, p.Repetitions, 2, r.Name)
			require.Equal(t, 1000, p.Lookups, r.Name)
			require.Positive(t, p.NsPerLookup, r.Name)
			require.EqualValues(t, 250, p.Latency.Lookups, r.Name)
			require.LessOrEqual(t, p.Latency.P50, p.Latency.P99, r.Name)
			require.NotNil(t, r.Metric(string(kind), "ns/op"), r.Name)
		}
	}
	ids := identities(set)
	require.Empty(t, ids.Failures)
	require.NoError(t, ids.Err())
	require.Greater(t, ids.Checked, 100)

	filtered := set[2]
	require.InDelta(t, 10, filtered.BitsPerKey, 2)
	require.InDelta(t, 10, filtered.Theory.BitsPerKey, 2)
	require.NotNil(t, filtered.Absent.FPR)
	require.Less(t, filtered.Absent.FPR.Value, 0.05)
	require.EqualValues(t, 1000, filtered.Absent.FPR.Trials)
	require.Nil(t, set[1].Theory, "no filter, no theory")
	require.Nil(t, set[1].Absent.FPR)

	left, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Empty(t, left, "the temporary stores are removed")
}

func TestRunIsDeterministic(t *testing.T) {
	c := small(t)
	c.Engines = []string{SiftKV}
	a, err := c.run(t.Context())
	require.NoError(t, err)
	b, err := c.run(t.Context())
	require.NoError(t, err)
	for i := range a {
		for _, kind := range engine.Kinds {
			pa, pb := a[i].Phase(kind), b[i].Phase(kind)
			require.Equal(t, pa.Counters, pb.Counters, "%s, %s", a[i].Name, kind)
			require.Equal(t, pa.FPR, pb.FPR)
		}
	}
	require.Equal(t, a[1].Shape, b[1].Shape)
}

// tampering is a store whose readers are replaced.
type tampering struct {
	engine.Store
	reader func(engine.Reader) engine.Reader
}

func (s tampering) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := s.Store.NewReader(a, k)
	return s.reader(r), err
}

// Rest makes it a store that can be grown, if the one behind it is.
func (s tampering) Rest(ctx context.Context) error { return s.Store.(measure.RestingStore).Rest(ctx) }

// forgetful loses every key.
type forgetful struct{ engine.Reader }

func (forgetful) Get(dst, _ []byte) ([]byte, bool, error) { return dst, false, nil }

// miscounting reports one negative too many.
type miscounting struct{ engine.Reader }

func (r miscounting) Counters() (engine.Counters, error) {
	c, err := r.Reader.Counters()
	c.Total.Negatives += c.Lookups / 10
	return c, err
}

// wrap replaces the readers of one store.
func wrap(store string, reader func(engine.Reader) engine.Reader) func(string, engine.Store) engine.Store {
	return func(name string, s engine.Store) engine.Store {
		if name == store {
			return tampering{s, reader}
		}
		return s
	}
}

func TestAWrongAnswerEndsTheRun(t *testing.T) {
	for _, store := range []string{"siftkv blocked:10", "pebble none"} {
		c := small(t)
		c.wrap = wrap(store, func(r engine.Reader) engine.Reader { return forgetful{r} })
		r, err := c.run(t.Context())
		require.Nil(t, r)
		require.ErrorIs(t, err, bench.ErrWrongAnswer)
		require.ErrorContains(t, err, store+": wrong answer for the existing key")
		var wrong *measure.WrongAnswer
		require.ErrorAs(t, err, &wrong)
		require.Len(t, wrong.Key, 16)
		left, err := os.ReadDir(c.dir)
		require.NoError(t, err)
		require.Empty(t, left, "the temporary stores are removed")
	}
}

func TestABrokenCounterIsFound(t *testing.T) {
	c := small(t)
	c.wrap = wrap("siftkv blocked:10", func(r engine.Reader) engine.Reader { return miscounting{r} })
	r, err := c.run(t.Context())
	require.NoError(t, err)
	ids := identities(r)
	require.ErrorIs(t, ids.Err(), bench.ErrIdentity)
	require.ErrorContains(t, ids.Err(), "siftkv blocked:10, existing keys, repetition 1")
	broken := map[string]bool{}
	for _, f := range ids.Failures {
		broken[f.Rule] = true
	}
	require.True(t, broken["filter checks = negatives + remembered + true positives + false positives"])
	require.True(t, broken["false negatives = 0 (negatives for existing keys in a settled tree)"])
	require.True(t, broken["sum over levels = total: filter negatives"])
}

func TestRunStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := small(t)
	c.wrap = func(name string, s engine.Store) engine.Store {
		if name == "pebble none" {
			cancel()
		}
		return s
	}
	_, err := c.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAStoreThatFailsNamesItself(t *testing.T) {
	full := errors.New("disk full")
	c := small(t)
	c.wrap = func(name string, s engine.Store) engine.Store {
		if name == "pebble none" {
			return failing{s, full}
		}
		return s
	}
	_, err := c.run(t.Context())
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "pebble none: disk full")
}

type failing struct {
	engine.Store
	err error
}

func (f failing) Settle(context.Context) error { return f.err }

func TestConfigErrorsAreUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*trial)
		want   string
	}{
		"engine":      {func(c *trial) { c.Engines = []string{"oracle"} }, "choose from siftkv, pebble"},
		"no engine":   {func(c *trial) { c.Engines = nil }, "nothing to measure"},
		"no filter":   {func(c *trial) { c.Filters = nil }, "at least one"},
		"filter":      {func(c *trial) { c.Filters = []string{"sieve:10"} }, "filter"},
		"own filter":  {func(c *trial) { c.Filters = []string{"own:10"} }, "no filters but those of this project"},
		"compression": {func(c *trial) { c.set("compression", "lz4") }, "choose from none, snappy, zstd"},
		"lookups":     {func(c *trial) { c.set("lookups", "0") }, "lookups 0: want 1 to"},
		"reps":        {func(c *trial) { c.set("reps", "0") }, "reps 0"},
		"cache":       {func(c *trial) { c.set("cache", "1") }, "cache"},
		"memtable":    {func(c *trial) { c.set("memtable", "1") }, "memtable"},
		"block":       {func(c *trial) { c.set("block", "1") }, "block"},
		"value":       {func(c *trial) { c.set("value-size", "1") }, "value-size 1"},
		"compaction":  {func(c *trial) { c.set("compaction", "sideways") }, "choose from leveled"},
		"keys":        {func(c *trial) { c.set("keys", "1") }, "1 keys"},
		"file":        {func(c *trial) { c.set("keys", "/nothing/here") }, "no such file"},
		"dir":         {func(c *trial) { c.dir = "/nothing/here" }, "not a directory"},
	} {
		c := small(t)
		tc.change(c)
		_, err := c.run(t.Context())
		require.ErrorIs(t, err, bench.ErrUsage, name)
		require.ErrorContains(t, err, tc.want, name)
	}
}

func TestEnginesChooseRows(t *testing.T) {
	for _, tc := range []struct {
		engines []string
		stores  int
		rows    []string
	}{
		{[]string{SiftKV}, 3, []string{"null", "siftkv none", "siftkv blocked:10"}},
		{[]string{"pebble-iterator/own:10"}, 2, []string{"null", "pebble iterator bloom(10)"}},
		{[]string{"pebble-iterator/own:10", "pebble/own:10"}, 2,
			[]string{"null", "pebble bloom(10)", "pebble iterator bloom(10)"}},
		{[]string{"pebble/none", "pebble/blocked:10"}, 3, []string{"null", "pebble none", "pebble siftkv blocked:10"}},
	} {
		c := small(t)
		c.Engines = tc.engines
		list, err := c.rows()
		require.NoError(t, err)
		var rows []string
		stores := map[string]bool{}
		for _, r := range list {
			rows, stores[r.Settings.BuildText()] = append(rows, r.Name), true
		}
		require.Len(t, stores, tc.stores)
		require.Equal(t, tc.rows, rows, fmt.Sprint(tc.engines))
	}
}
