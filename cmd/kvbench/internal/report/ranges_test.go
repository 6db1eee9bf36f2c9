package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/ranges"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestRangesGolden(t *testing.T) {
	row := func(name string, bits float64, passed int) ranges.Row {
		rate := float64(passed) / 100_000
		return ranges.Row{
			Name: name, BitsPerKey: bits, TheoryBits: bits + 0.01, TheoryRate: 0.0113, BuildNs: 75.04, PointNs: 30,
			Rates: []ranges.Rate{
				{Ranges: "2 units, anywhere", Asked: 100_000, Passed: passed, Rate: rate, Low: 0.9 * rate,
					High: 1.1 * rate, Ns: 164.2},
				{Ranges: "1 gap, anywhere"},
			},
		}
	}
	r := &ranges.Result{
		Schema: ranges.Schema, Environment: sample().Environment,
		Settings:    ranges.Settings{Probes: 100_000, Repetitions: 3, Seed: 1},
		WallSeconds: 12.3,
		Tables: []ranges.Table{{Set: "random", Keys: 1_000_000, KeyBytes: 16,
			Rows: []ranges.Row{row("cut:4", 10.83, 4508), row("cut:6", 12.79, 1127)}}},
	}
	var out bytes.Buffer
	require.NoError(t, Ranges(&out, r))
	golden.File(t, "testdata/ranges.txt", out.Bytes())
	out.Reset()
	require.NoError(t, RangesCSV(&out, r))
	golden.File(t, "testdata/ranges.csv", out.Bytes())
	data, err := results.JSON(r)
	require.NoError(t, err)
	golden.File(t, "testdata/ranges.json", data)
}
