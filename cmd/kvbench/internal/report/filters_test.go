package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestFiltersGolden(t *testing.T) {
	r := &filters.Result{
		Schema: filters.Schema, Environment: sample().Environment,
		Settings:    filters.Settings{Probes: 1_000_000, Repetitions: 3, Seed: 1},
		WallSeconds: 12.3,
		Tables: []filters.Table{{Keys: 1_000_000, Rows: []filters.Row{
			{Name: "blocked:10", BitsPerKey: 10.0003, TheoryBits: 10, FPR: 0.0096, FPRLow: 0.0094, FPRHigh: 0.0098,
				TheoryFPR: 0.00965,
				BuildNs:   12.34, BuildBytes: 9.2, PresentNs: 20.5, AbsentNs: 15, SmallPresentNs: 11,
				SmallAbsentNs: 9.5, ManyAbsentNs: 1234.5, FasterThanPebble: 4.5},
			{Name: "other", Library: true, BitsPerKey: 8.5, FPR: 0.03, FPRLow: 0.0299, FPRHigh: 0.0301,
				BuildNs: 123.4, BuildBytes: 65, PresentNs: 100, AbsentNs: 99.94, SmallPresentNs: 30,
				SmallAbsentNs: 29, ManyAbsentNs: 900},
		}}},
	}
	var out bytes.Buffer
	require.NoError(t, Filters(&out, r))
	golden.File(t, "testdata/filters.txt", out.Bytes())
	data, err := results.JSON(r)
	require.NoError(t, err)
	golden.File(t, "testdata/filters.json", data)
}
