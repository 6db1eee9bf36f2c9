package readamp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// small is a run of a second or less.
func small(t *testing.T) *Config {
	t.Helper()
	return &Config{
		Keys: keys.Request{Keys: "2000", KeySize: 16, MaxLen: 1000, Seed: 1},
		Settings: Settings{
			ValueBytes: 100, Filters: []string{"none", "blocked:10"}, Engines: Engines(),
			Lookups: 500, Repetitions: 2, Seed: 1,
			Store: engine.Settings{
				CacheBytes: 1 << 20, MemtableBytes: 1 << 20, BlockBytes: 4096, Compression: "snappy", Compactions: 1,
				BatchKeys: 100,
			},
		},
		Dir: t.TempDir(), Progress: progress.New(io.Discard, "none"),
	}
}

func TestRunMeasuresEveryRow(t *testing.T) {
	c := small(t)
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	names := make([]string, len(r.Rows))
	for i := range r.Rows {
		names[i] = r.Rows[i].Name
	}
	want := []string{
		"null", "siftkv none", "siftkv blocked:10",
		"pebble none", "pebble bloom(10)", "pebble iterator bloom(10)", "pebble siftkv blocked:10",
	}
	if engine.HasRocksDB() {
		want = append(want, "rocksdb none", "rocksdb bloom:10", "rocksdb ribbon:10")
	}
	require.Equal(t, want, names)
	require.Len(t, r.Stores, len(want)-2, "the iterator shares the store of Get")
	for _, row := range r.Rows {
		for _, kind := range engine.Kinds {
			p := row.Phase(kind)
			require.Len(t, p.Repetitions, 2, row.Name)
			require.Equal(t, 1000, p.Lookups, row.Name)
			require.Positive(t, p.NsPerLookup, row.Name)
			require.EqualValues(t, 250, p.Latency.Lookups, row.Name)
			require.LessOrEqual(t, p.Latency.P50, p.Latency.P99, row.Name)
		}
	}
	require.Empty(t, r.Identities.Failures)
	require.NoError(t, r.Identities.Err())
	require.Greater(t, r.Identities.Checked, 100)

	filtered := r.Rows[2]
	require.InDelta(t, 10, filtered.BitsPerKey, 2)
	require.InDelta(t, 10, filtered.Theory.BitsPerKey, 2)
	require.NotNil(t, filtered.Absent.FPR)
	require.Less(t, filtered.Absent.FPR.Value, 0.05)
	require.EqualValues(t, 1000, filtered.Absent.FPR.Trials)
	require.Nil(t, r.Rows[1].Theory, "no filter, no theory")
	require.Nil(t, r.Rows[1].Absent.FPR)

	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left, "the temporary stores are removed")
}

func TestRunIsDeterministic(t *testing.T) {
	c := small(t)
	c.Engines = []string{SiftKV}
	a, err := Run(t.Context(), c)
	require.NoError(t, err)
	b, err := Run(t.Context(), c)
	require.NoError(t, err)
	for i := range a.Rows {
		for _, kind := range engine.Kinds {
			pa, pb := a.Rows[i].Phase(kind), b.Rows[i].Phase(kind)
			require.Equal(t, pa.Counters, pb.Counters, "%s, %s", a.Rows[i].Name, kind)
			require.Equal(t, pa.FPR, pb.FPR)
		}
	}
	require.Equal(t, a.Stores[0].Shape, b.Stores[0].Shape)
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
		c.Wrap = wrap(store, func(r engine.Reader) engine.Reader { return forgetful{r} })
		r, err := Run(t.Context(), c)
		require.Nil(t, r)
		require.ErrorIs(t, err, bench.ErrWrongAnswer)
		require.ErrorContains(t, err, store+": wrong answer for the existing key")
		var wrong *measure.WrongAnswer
		require.ErrorAs(t, err, &wrong)
		require.Len(t, wrong.Key, 16)
		left, err := os.ReadDir(c.Dir)
		require.NoError(t, err)
		require.Empty(t, left, "the temporary stores are removed")
	}
}

func TestABrokenCounterIsFound(t *testing.T) {
	c := small(t)
	c.Wrap = wrap("siftkv blocked:10", func(r engine.Reader) engine.Reader { return miscounting{r} })
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.ErrorIs(t, r.Identities.Err(), bench.ErrIdentity)
	require.ErrorContains(t, r.Identities.Err(), "siftkv blocked:10, existing keys, repetition 1")
	broken := map[string]bool{}
	for _, f := range r.Identities.Failures {
		broken[f.Rule] = true
	}
	require.True(t, broken["filter checks = negatives + remembered + true positives + false positives"])
	require.True(t, broken["false negatives = 0 (negatives for existing keys in a settled tree)"])
	require.True(t, broken["sum over levels = total: negatives"])
}

func TestIdentitiesAreCheckedByLevel(t *testing.T) {
	good := engine.Tally{FilesConsidered: 10, FilterChecks: 10, Negatives: 7, FalsePositives: 3, IndexLookups: 3,
		OutOfIndex: 1, BlocksFromCache: 2}
	result := func(c engine.Counters) *Result {
		r := &Result{Stores: []StoreResult{{Name: "s", Settled: true}}, Rows: []Row{{Name: "row", Store: "s"}}}
		r.Rows[0].Absent.Repetitions = []measure.Repetition{{Lookups: 10, Counters: c}}
		return r
	}
	counters := func(level engine.Tally) engine.Counters {
		return engine.Counters{Lookups: 10, Total: good, Levels: []engine.Tally{{}, level}}
	}
	require.Empty(t, checkIdentities(result(counters(good))).Failures)
	for _, broken := range []struct {
		change func(*engine.Tally)
		want   string
	}{
		{func(c *engine.Tally) { c.FilterChecks++ }, "filter checks = negatives"},
		{func(c *engine.Tally) { c.FilesConsidered++ }, "files considered = ruled out"},
		{func(c *engine.Tally) { c.IndexLookups++ }, "index lookups = unfiltered"},
		{func(c *engine.Tally) { c.BlocksFromCache-- }, "data blocks >= index lookups"},
		{func(c *engine.Tally) { c.BytesFromDisk++ }, "sum over levels = total: bytes from disk"},
	} {
		level := good
		broken.change(&level)
		got := checkIdentities(result(counters(level)))
		require.NotEmpty(t, got.Failures, broken.want)
		found := slices.ContainsFunc(got.Failures,
			func(f measure.Failure) bool { return strings.HasPrefix(f.Rule, broken.want) })
		require.True(t, found, "%s: %v", broken.want, got.Failures)
		require.Contains(t, got.Failures[0].Where, "row, absent keys, repetition 1")
	}
	more := good
	more.BlocksFromCache++
	require.Empty(t, checkIdentities(result(engine.Counters{Lookups: 10, Total: more})).Failures,
		"a second block is allowed")

	lost := engine.Counters{Lookups: 10,
		Total: engine.Tally{FilesConsidered: 10, FilterChecks: 10, Negatives: 1, TruePositives: 9, IndexLookups: 9,
			BlocksFromDisk: 9, Answered: 10}}
	r := result(engine.Counters{Lookups: 10, Total: good})
	r.Rows[0].Existing.Repetitions = []measure.Repetition{{Lookups: 10, Counters: lost}}
	require.ErrorContains(t, new(checkIdentities(r)).Err(), "false negatives = 0")

	miscounted := engine.Counters{Lookups: 11, MemtableAnswers: 1, Total: good}
	require.Len(t, checkIdentities(result(miscounted)).Failures, 2, "lookups, and answers")
	r = result(engine.Counters{Lookups: 10, Total: good})
	r.Keys.Present = 5
	require.Contains(t, checkIdentities(r).Failures[0].Rule, "entries in the tree")
}

func TestRunStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := small(t)
	c.Wrap = func(name string, s engine.Store) engine.Store {
		if name == "pebble none" {
			cancel()
		}
		return s
	}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAStoreThatFailsNamesItself(t *testing.T) {
	full := errors.New("disk full")
	c := small(t)
	c.Wrap = func(name string, s engine.Store) engine.Store {
		if name == "pebble none" {
			return failing{s, full}
		}
		return s
	}
	_, err := Run(t.Context(), c)
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
		change func(*Config)
		want   string
	}{
		"engine":      {func(c *Config) { c.Engines = []string{"oracle"} }, "choose from siftkv, pebble"},
		"no engine":   {func(c *Config) { c.Engines = nil }, "nothing to measure"},
		"no filter":   {func(c *Config) { c.Filters = nil }, "at least one"},
		"filter":      {func(c *Config) { c.Filters = []string{"sieve:10"} }, "--filter"},
		"twice":       {func(c *Config) { c.Filters = []string{"none", "none"} }, "given twice"},
		"compression": {func(c *Config) { c.Store.Compression = "lz4" }, "choose from none, snappy, zstd"},
		"lookups":     {func(c *Config) { c.Lookups = 0 }, "--lookups 0: want 1 to"},
		"reps":        {func(c *Config) { c.Repetitions = 0 }, "--reps 0"},
		"cache":       {func(c *Config) { c.Store.CacheBytes = -1 }, "--cache"},
		"memtable":    {func(c *Config) { c.Store.MemtableBytes = 1 }, "--memtable"},
		"block":       {func(c *Config) { c.Store.BlockBytes = 1 }, "--block"},
		"value":       {func(c *Config) { c.ValueBytes = 1 }, "values of 1 bytes"},
		"keys":        {func(c *Config) { c.Keys.Keys = "1" }, "1 keys"},
		"file":        {func(c *Config) { c.Keys.Keys = "/nothing/here" }, "no such file"},
		"dir":         {func(c *Config) { c.Dir = "/nothing/here" }, "not a directory"},
	} {
		c := small(t)
		tc.change(c)
		_, err := Run(t.Context(), c)
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
		{[]string{PebbleIterator}, 2, []string{"null", "pebble iterator bloom(10)"}},
		{[]string{PebbleIterator, PebbleBloom}, 2, []string{"null", "pebble bloom(10)", "pebble iterator bloom(10)"}},
		{[]string{PebblePlain, PebbleSiftKV}, 3, []string{"null", "pebble none", "pebble siftkv blocked:10"}},
	} {
		c := small(t)
		c.Engines = tc.engines
		list, err := c.rows()
		require.NoError(t, err)
		var rows []string
		stores := map[string]bool{}
		for _, r := range list {
			rows, stores[r.store] = append(rows, r.name), true
		}
		require.Len(t, stores, tc.stores)
		require.Equal(t, tc.rows, rows, fmt.Sprint(tc.engines))
	}
}

func TestSummaryTakesMediansAndSums(t *testing.T) {
	tally := engine.Tally{Negatives: 990, FalsePositives: 10}
	rep := func(nanos int64) measure.Repetition {
		return measure.Repetition{Lookups: 1000, Nanos: nanos, Counters: engine.Counters{Lookups: 1000, Total: tally}}
	}
	h := measure.NewHistogram()
	for i := range 1000 {
		require.NoError(t, h.RecordValue(int64(i+1)))
	}
	p := measure.Summarise([]measure.Repetition{rep(3e6), rep(1e6), rep(9e6)}, h, 0.5)
	require.InDelta(t, 3000, p.NsPerLookup, 1e-9)
	require.Equal(t, 3000, p.Lookups)
	require.Equal(t, engine.Count(3000), p.Counters.Lookups)
	require.Equal(t, engine.Count(30), p.Counters.Total.FalsePositives)
	require.InDelta(t, 500, p.Latency.P50, 1)
	require.InDelta(t, 990, p.Latency.P99, 1)
	require.InDelta(t, 0.01, p.FPR.Value, 1e-12)
	require.EqualValues(t, 3000, p.FPR.Trials)
	require.EqualValues(t, 1500, p.FPR.Distinct)
	low, high := measure.Wilson(0.01, 1500)
	require.InDelta(t, low, p.FPR.Low, 0)
	require.InDelta(t, high, p.FPR.High, 0)
}

func TestComparisonsAreAgainstPebbleBloom(t *testing.T) {
	row := func(engineName, filter string, nanos ...int64) Row {
		r := Row{Name: engineName + " " + filter, Engine: engineName, Filter: filter, Access: engine.Get}
		for _, n := range nanos {
			r.Absent.Repetitions = append(r.Absent.Repetitions, measure.Repetition{Lookups: 1, Nanos: n})
		}
		r.Absent.NsPerLookup = float64(nanos[0])
		r.Existing = r.Absent
		return r
	}
	rows := []Row{row("null", "", 1, 1), row("siftkv", "none", 100, 200), row("pebble", "none", 500, 500),
		row("pebble", pebbleOwn, 1000, 1000)}
	got := compare(rows)
	require.Len(t, got, 4, "two rows, two kinds")
	require.Equal(t, Comparison{
		Kind: engine.Existing, Row: "siftkv none", Baseline: "pebble bloom(10)", BaselineNs: 1000,
		Speedup: 10, Low: 5, High: 10,
	}, got[0])
	require.Equal(t, "pebble none", compare(rows[:3])[0].Baseline)
	require.Empty(t, compare(rows[:2]))
	for _, c := range got {
		require.False(t, math.IsInf(c.Low, 0))
	}
}
