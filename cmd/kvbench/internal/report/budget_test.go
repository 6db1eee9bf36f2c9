package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/internal/golden"
)

// sampleBudget has a level that is asked, one that no lookup came to, and one
// without filters.
func sampleBudget() *budget {
	tree := func(name string, filterBytes int64, passed engine.Count) *cell.Result {
		young := engine.Tally{FilesConsidered: 2000, OutOfBounds: 100, FilterChecks: 1900, Negatives: 1900 - passed,
			FalsePositives: passed, IndexLookups: passed, BlocksFromCache: passed}
		old := engine.Tally{FilesConsidered: 1000, Unfiltered: 1000, IndexLookups: 1000, BlocksFromCache: 900,
			BlocksFromDisk: 100}
		r := &cell.Result{
			Name: name,
			Shape: engine.Shape{Levels: []engine.LevelShape{
				{Level: 0, Runs: 2, Files: 2, Bytes: 20_000, Entries: 500, FilterBytes: filterBytes},
				{Level: 5, Runs: 1, Files: 1, Bytes: 10_000, Entries: 2500, FilterBytes: 3000},
				{Level: 6, Runs: 1, Files: 99, Bytes: 5_000_000, Entries: 300_000},
			}},
			Levels: []measure.LevelRate{
				{
					Level: 0, Runs: 2, Keys: 500, BitsPerKey: 8 * float64(filterBytes) / 500, Predicted: 0.0095,
					Measured: &measure.Rate{Value: float64(passed) / 1900, Low: 0.005, High: 0.0123, Trials: 1900,
						Distinct: 1900},
				},
				{Level: 5, Runs: 1, Keys: 2500, BitsPerKey: 9.6, Predicted: 0.011},
				{Level: 6, Runs: 1, Keys: 300_000, Predicted: 1,
					Measured: &measure.Rate{Value: 1, Low: 0.99, High: 1, Trials: 1000, Distinct: 1000}},
			},
			Predicted: 1.03, Sum: &measure.Sum{Value: 1.02, Low: 1.01, High: 1.03},
		}
		r.Settings = cell.Default()
		r.Settings.Filter, r.Settings.Shape = "bloom:10", cell.Grown
		r.Keys.Present, r.Build.Rewritten = 300_000, 100_123
		r.Absent.Phase = measure.Phase{Lookups: 1000, NsPerLookup: 1234.5, Counters: engine.Counters{Lookups: 1000,
			Total: engine.Plus(young, old)}}
		r.Metrics = []cell.Metric{{Kind: "absent", Level: "0", Unit: "filter-checks/op", Value: 1.9},
			{Kind: "absent", Level: "0", Unit: "blocks/op", Value: float64(passed) / 1000},
			{Kind: "absent", Level: "6", Unit: "unfiltered/op", Value: 1},
			{Kind: "absent", Level: "6", Unit: "blocks/op", Value: 1}}
		return r
	}
	b := &budget{tree("siftkv uniform bloom:10", 625, 19), tree("siftkv budget bloom:10", 680, 0)}
	b.spread.Predicted = 0.278
	return b
}

func TestBudgetIsGolden(t *testing.T) {
	var out Page
	sampleBudget().write(&out)
	golden.File(t, "testdata/budget.txt", out.Bytes())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 160, line)
		require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimRight(line, "\n"), "nothing trails")
	}
}

func TestBudgetIsASectionOfTheReport(t *testing.T) {
	set, b := sample(), sampleBudget()
	var without, with bytes.Buffer
	var section Page
	require.NoError(t, ReadAmp(&without, set))
	require.NotContains(t, without.String(), "Filter budget")
	require.NoError(t, ReadAmp(&with, append(set, b.uniform, b.spread)))
	b.write(&section)
	require.Equal(t, without.String(), strings.Replace(strings.Replace(with.String(), section.String(), "", 1),
		"\n  - "+budgetNote, "", 1))
}

func TestGainsAndEqualMemory(t *testing.T) {
	b := sampleBudget()
	require.Empty(t, b.warnings(), "1.5 % more")
	b.spread.Shape.Levels[0].FilterBytes, b.spread.Sum.Value = 734, 0
	require.Len(t, b.warnings(), 1)
	require.Contains(t, b.warnings()[0], "+3.0 %")
	var out Page
	b.write(&out)
	require.Regexp(t, `predicted, % +103.0 → +27.8  ÷ 3.71\n`, out.String())
	require.Regexp(t, `measured, % +102.0 → +0.0000\n`, out.String(), "nothing is divided by zero")
}
