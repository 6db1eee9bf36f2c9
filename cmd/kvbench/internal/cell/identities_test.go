package cell

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

func TestIdentitiesAreCheckedByLevel(t *testing.T) {
	good := engine.Tally{FilesConsidered: 10, FilterChecks: 10, Negatives: 7, FalsePositives: 3, IndexLookups: 3,
		OutOfIndex: 1, BlocksFromCache: 2}
	result := func(c engine.Counters) *Result {
		r := &Result{Name: "row", Build: Build{Settled: true}}
		r.Absent.Repetitions = []measure.Repetition{{Lookups: 10, Counters: c}}
		return r
	}
	check := func(r *Result) measure.Identities { return checkIdentities(r, false) }
	counters := func(level engine.Tally) engine.Counters {
		return engine.Counters{Lookups: 10, Total: good, Levels: []engine.Tally{{}, level}}
	}
	require.Empty(t, check(result(counters(good))).Failures)
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
		got := check(result(counters(level)))
		require.NotEmpty(t, got.Failures, broken.want)
		found := slices.ContainsFunc(got.Failures,
			func(f measure.Failure) bool { return strings.HasPrefix(f.Rule, broken.want) })
		require.True(t, found, "%s: %v", broken.want, got.Failures)
		require.Contains(t, got.Failures[0].Where, "row, absent keys, repetition 1")
	}
	more := good
	more.BlocksFromCache++
	require.Empty(t, check(result(engine.Counters{Lookups: 10, Total: more})).Failures,
		"a second block is allowed")

	lost := engine.Counters{Lookups: 10,
		Total: engine.Tally{FilesConsidered: 10, FilterChecks: 10, Negatives: 1, TruePositives: 9, IndexLookups: 9,
			BlocksFromDisk: 9, Answered: 10}}
	r := result(engine.Counters{Lookups: 10, Total: good})
	r.Existing.Repetitions = []measure.Repetition{{Lookups: 10, Counters: lost}}
	require.ErrorContains(t, new(check(r)).Err(), "false negatives = 0")

	miscounted := engine.Counters{Lookups: 11, MemtableAnswers: 1, Total: good}
	require.Len(t, check(result(miscounted)).Failures, 2, "lookups, and answers")
	r = result(engine.Counters{Lookups: 10, Total: good})
	r.Keys.Present, r.Shape.Levels = 5, []engine.LevelShape{{Level: 1, Entries: 4}}
	require.Contains(t, check(r).Failures[0].Rule, "entries in the tree")
}

// TestRatesOfLevelsAreChecked changes one number of a tree of two levels whose counters add up, and names the rule that
// finds it.
func TestRatesOfLevelsAreChecked(t *testing.T) {
	young := engine.Tally{FilesConsidered: 20, FilterChecks: 20, Negatives: 19, FalsePositives: 1, IndexLookups: 1,
		BlocksFromCache: 1}
	old := engine.Tally{FilesConsidered: 10, FilterChecks: 8, Negatives: 7, Remembered: 1, Unfiltered: 2,
		IndexLookups: 2, BlocksFromCache: 2}
	runs := []engine.LevelShape{{Runs: 1, Files: 1, Entries: 3, FilterBytes: 4},
		{Runs: 1, Files: 1, Entries: 2, FilterBytes: 3}}
	last := engine.LevelShape{Level: 1, Runs: 1, Files: 2, Entries: 9, FilterBytes: 11}
	good := func() *Result {
		r := &Result{Name: "row"}
		r.Keys.Present = 12
		r.Shape.Levels = []engine.LevelShape{{Runs: 2, Files: 2, Entries: 5, FilterBytes: 7}, last}
		r.Shape.ByRun = append(slices.Clone(runs), last)
		r.Absent.Lookups = 10
		r.Absent.Counters = engine.Counters{Lookups: 10, Total: engine.Plus(young, old),
			Levels: []engine.Tally{young, old}}
		r.Levels = []measure.LevelRate{{Level: 0, Measured: &measure.Rate{Value: 0.05, Trials: 20}},
			{Level: 1, Measured: &measure.Rate{Value: 0.3, Trials: 10}}}
		return r
	}
	ids := checkIdentities(good(), false)
	require.NoError(t, ids.Err())
	require.Zero(t, ids.Unknown)
	require.Equal(t, 2+2*(4+1)+1, ids.Checked)
	require.Subset(t, ids.Rules, []string{ruleRates, ruleRuns, ruleAsked})
	for name, broken := range map[string]struct {
		change func(*Result)
		rule   string
	}{
		"trials":         {func(r *Result) { r.Levels[0].Measured.Trials++ }, ruleRates},
		"passes":         {func(r *Result) { r.Levels[1].Measured.Value = 0.4 }, ruleRates},
		"no rate":        {func(r *Result) { r.Levels[1].Measured = nil }, ruleRates},
		"checks":         {func(r *Result) { r.Absent.Counters.Total.FilterChecks++ }, ruleRates},
		"unfiltered":     {func(r *Result) { r.Absent.Counters.Total.Unfiltered-- }, ruleRates},
		"remembered":     {func(r *Result) { r.Absent.Counters.Total.Remembered++ }, ruleRates},
		"index lookups":  {func(r *Result) { r.Absent.Counters.Total.IndexLookups++ }, ruleRates},
		"runs":           {func(r *Result) { r.Shape.Levels[0].Runs++ }, ruleRuns},
		"files of a run": {func(r *Result) { r.Shape.ByRun[0].Files++ }, ruleRuns},
		"files":          {func(r *Result) { r.Shape.Levels[1].Files-- }, ruleRuns},
		"entries":        {func(r *Result) { r.Shape.ByRun[1].Entries++ }, ruleRuns},
		"filter bytes":   {func(r *Result) { r.Shape.ByRun[2].FilterBytes++ }, ruleRuns},
		"asked, young":   {func(r *Result) { r.Absent.Counters.Levels[0].FilesConsidered++ }, ruleAsked},
		"asked, old":     {func(r *Result) { r.Absent.Counters.Levels[1].FilesConsidered++ }, ruleAsked},
		"lookups":        {func(r *Result) { r.Absent.Lookups-- }, ruleAsked},
		"keys":           {func(r *Result) { r.Keys.Present = 15 }, measure.RuleEntries},
	} {
		r := good()
		broken.change(r)
		got := checkIdentities(r, false)
		require.NotEmpty(t, got.Failures, name)
		for _, f := range got.Failures {
			require.Equal(t, broken.rule, f.Rule, name)
			require.True(t, strings.HasPrefix(f.Where, "row"), f.Where)
		}
	}
	r := good()
	r.Levels = nil
	require.NotContains(t, checkIdentities(r, false).Rules, ruleRates)
}
