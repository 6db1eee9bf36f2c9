package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

// sampleBudget has a level that is asked, one that no lookup came to, and one
// without filters.
func sampleBudget() *readamp.Budget {
	store := func(name string, filterBytes int64, passed engine.Count) readamp.BudgetStore {
		young := engine.Tally{FilesConsidered: 2000, OutOfBounds: 100, FilterChecks: 1900, Negatives: 1900 - passed,
			FalsePositives: passed, IndexLookups: passed, BlocksFromCache: passed}
		old := engine.Tally{FilesConsidered: 1000, Unfiltered: 1000, IndexLookups: 1000, BlocksFromCache: 900,
			BlocksFromDisk: 100}
		return readamp.BudgetStore{
			Name: name, Tree: engine.Tree{FileBytes: 16 << 10, BaseLevelBytes: 32 << 10}, LoadSeconds: 1.5,
			Shape: engine.Shape{Levels: []engine.LevelShape{
				{Level: 0, Files: 2, Bytes: 20_000, Entries: 500, FilterBytes: filterBytes},
				{Level: 5, Files: 1, Bytes: 10_000, Entries: 2500, FilterBytes: 3000},
				{Level: 6, Files: 99, Bytes: 5_000_000, Entries: 300_000},
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
			PredictedSum: 1.03, MeasuredSum: measure.Sum{Value: 1.02, Low: 1.01, High: 1.03},
			BlocksPerLookup: 1 + float64(passed)/1000, NsPerLookup: 1234.5,
			Counters: engine.Counters{Lookups: 1000, Total: young.Plus(old),
				Levels: []engine.Tally{young, {}, {}, {}, {}, {}, old}},
		}
	}
	return &readamp.Budget{
		Filter: "bloom:10", Keys: 300_000, Rewritten: 100_123, Lookups: 1000,
		Uniform: store("siftkv uniform bloom:10", 625, 19), Spread: store("siftkv budget bloom:10", 1250, 0),
		Memory: 1.0172, Predicted: 3.71, Measured: 0, Blocks: 1.019,
	}
}

func TestBudgetIsGolden(t *testing.T) {
	var out page.Page
	writeBudget(&out, sampleBudget())
	golden.File(t, "testdata/budget.txt", out.Bytes())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 160, line)
		require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimRight(line, "\n"), "nothing trails")
	}
}

func TestBudgetIsASectionOfTheReport(t *testing.T) {
	r := sample()
	var without, with bytes.Buffer
	var section page.Page
	require.NoError(t, ReadAmp(&without, r))
	require.NotContains(t, without.String(), "Filter budget")
	r.Budget = sampleBudget()
	require.NoError(t, ReadAmp(&with, r))
	writeBudget(&section, r.Budget)
	require.Equal(t, without.String(), strings.Replace(with.String(), section.String(), "", 1))

	data, err := results.JSON(r)
	require.NoError(t, err)
	var back readamp.Result
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, r.Budget, back.Budget, "nothing is lost")
}
