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
