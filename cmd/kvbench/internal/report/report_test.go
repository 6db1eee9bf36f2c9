package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/internal/golden"
)

// phase makes a phase of one repetition with fixed numbers.
func phase(ns int64, c engine.Counters, rate *measure.Rate) measure.Phase {
	return measure.Phase{
		NsPerLookup: float64(ns), Lookups: 1000, Counters: c, FPR: rate,
		Latency: measure.Percentiles{Lookups: 250, P50: ns + 10, P90: 2 * ns, P99: 3 * ns, P999: 4 * ns,
			Max: 1234567},
		Repetitions: []measure.Repetition{{Lookups: 1000, Nanos: 1000 * ns, Counters: c}},
	}
}

// sample is a result with every kind of cell: known, zero, unknown, no filter,
// two levels, a broken identity, a warning.
func sample() []*cell.Result {
	hit := engine.Tally{FilesConsidered: 1000, FilterChecks: 1000, TruePositives: 1000, IndexLookups: 1000,
		BlocksFromCache: 600, BlocksFromDisk: 400, BytesFromDisk: 912_345, Answered: 1000}
	miss := engine.Tally{FilesConsidered: 1000, OutOfBounds: 2, FilterChecks: 998, Negatives: 988, FalsePositives: 10,
		IndexLookups: 10, BlocksFromCache: 7, BlocksFromDisk: 3, BytesFromDisk: 6789}
	pebble := engine.UnknownTally()
	pebble.FilterChecks, pebble.Negatives, pebble.TruePositives, pebble.FalsePositives = 0, 0, 0, 0
	pebble.BlocksFromCache, pebble.BlocksFromDisk, pebble.BytesFromDisk = 2600, 400, 1_000_000
	counters := func(t engine.Tally) engine.Counters {
		return engine.Counters{Lookups: 1000, Total: t, Levels: []engine.Tally{{}, t}}
	}
	unlevelled := engine.Counters{Lookups: engine.Unknown, MemtableAnswers: engine.Unknown, Total: pebble}
	nothing := engine.Counters{Lookups: engine.Unknown, MemtableAnswers: engine.Unknown, Total: engine.UnknownTally()}
	env := environ.Environment{
		Argv:    []string{"kvbench", "readamp", "--json", "out.json"},
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Version: "v0.1.0", Revision: "abc123",
		Dependencies: []environ.Module{{Path: "github.com/cockroachdb/pebble/v2", Version: "v2.1.7"}},
		GoVersion:    "go1.26.0", OS: "linux", Arch: "amd64", Cgo: true, GOMAXPROCS: 2, Cores: 2, CPU: "A CPU",
		RAMBytes: 8 << 30,
		Kernel:   "6.1.0", Dir: "/tmp", Filesystem: "ext4", Load1: 0.25, Warnings: []string{},
	}
	row := func(name, engineName, filter string, existing, absent measure.Phase) *cell.Result {
		s := cell.Default()
		s.Engine, s.Filter, s.Lookups, s.Reps = engineName, filter, 1000, 1
		return &cell.Result{
			Name: name, Settings: s, Environment: env, TimerNs: 40, WallSeconds: 20,
			Keys: keys.Description{Origin: "generated", Seed: 1, Present: 1_000_000, Absent: 999_999, MinLen: 16,
				MaxLen: 16, MeanLen: 16},
			Existing: cell.Phase{Phase: existing}, Absent: cell.Phase{Phase: absent},
			Identities: measure.Identities{Rules: []string{"a = b + c"}, Checked: 400, Unknown: 10},
			Notes:      []string{"How to read this."}, Warnings: []string{}}
	}
	null := row("null", "null", "none", phase(57, nothing, nil), phase(7, nothing, nil))
	siftkv := row("siftkv blocked:10", "siftkv", "blocked:10", phase(1500, counters(hit), nil),
		phase(110, counters(miss),
			&measure.Rate{Value: 0.01002, Low: 0.00545, High: 0.01834, Trials: 998, Distinct: 998}))
	siftkv.BitsPerKey, siftkv.Theory = 10.02, &measure.Theory{BitsPerKey: 10, FPR: 0.0095}
	siftkv.Build.LoadSeconds, siftkv.Build.SettleSeconds = 2.34, 1.26
	siftkv.Shape.Levels = []engine.LevelShape{
		{Level: 0, Files: 1, Bytes: 5 << 20, Entries: 50_000, FilterBytes: 62_500, IndexBytes: 20_000},
		{Level: 6, Files: 12, Bytes: 80 << 20, Entries: 950_000, FilterBytes: 1_190_000, IndexBytes: 400_000},
	}
	siftkv.Identities.Failures = []measure.Failure{{Where: "siftkv blocked:10, absent keys, repetition 1",
		Rule: "a = b + c", Left: 3, Relation: "=", Right: 4}}
	siftkv.Warnings = []string{"siftkv blocked:10 is not settled: its files are in 2 levels"}
	pebbles := row("pebble bloom(10)", "pebble", "own:10", phase(12_345, unlevelled, nil),
		phase(9_876, unlevelled, nil))
	pebbles.BitsPerKey, pebbles.Theory = 10.08, &measure.Theory{BitsPerKey: 10, FPR: 0.0114}
	pebbles.Build.LoadSeconds, pebbles.Build.SettleSeconds = 4, 3
	pebbles.Shape.Levels = []engine.LevelShape{{Level: 6, Files: 9, Bytes: 81 << 20, Entries: 1_000_000,
		FilterBytes: 1_260_000, IndexBytes: 410_000}}
	return []*cell.Result{null, siftkv, pebbles}
}

func TestTextIsGolden(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, ReadAmp(&out, sample()))
	golden.File(t, "testdata/readamp.txt", out.Bytes())

	set := sample()[:2]
	set[0].Keys = keys.Description{Origin: "file", Path: "words.gz", Seed: 7, Present: 51_000, Absent: 50_998,
		Lines: 104_000, Empty: 1, Duplicates: 1999, Outside: 2, MinLen: 1, MaxLen: 23, MeanLen: 8.46}
	set[1].Identities.Failures, set[1].Warnings = nil, nil
	set[1].Settings.Index = 256 << 10
	out.Reset()
	require.NoError(t, ReadAmp(&out, set))
	golden.File(t, "testdata/readamp_file.txt", out.Bytes())
}

func TestTheSeedOfLookupsIsShownIfTheDataHasAnother(t *testing.T) {
	t.Parallel()
	set := sample()
	set[0].Settings.Seed = 9
	var out bytes.Buffer
	require.NoError(t, ReadAmp(&out, set))
	require.Contains(t, out.String(), "generated; seed 1\n")
	require.Contains(t, out.String(), "warm-up 1,000; seed 9\n")
}

func TestTablesFitTheTerminal(t *testing.T) {
	set := sample()
	set[1].Name = "pebble iterator bloom(10)"
	set[1].Absent.FPR = &measure.Rate{Value: 0.00191, Low: 0.00174, High: 0.00209, Trials: 250_000, Distinct: 250_000}
	set[1].Absent.Counters.Total.IndexLookups = 1000
	var out bytes.Buffer
	out.WriteString(phaseTable(set, engine.Existing).Text() + "\n" + phaseTable(set, engine.Absent).Text() + "\n" +
		storeTable(set).Text())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 160, line)
	}
}

func TestRowsThatShareAStoreShowItOnce(t *testing.T) {
	set := sample()
	iterator := *set[2]
	iterator.Name, iterator.Settings.Engine = "pebble iterator bloom(10)", "pebble-iterator"
	require.Equal(t, storeTable(set).Text(), storeTable(append(set, &iterator)).Text())
}

func TestComparisonsAreAgainstPebbleBloom(t *testing.T) {
	row := func(engineName, filter string, nanos ...int64) *cell.Result {
		r := &cell.Result{Name: engineName + " " + filter}
		r.Settings.Engine, r.Settings.Filter = engineName, filter
		for _, n := range nanos {
			r.Absent.Repetitions = append(r.Absent.Repetitions, measure.Repetition{Lookups: 1, Nanos: n})
		}
		r.Absent.NsPerLookup = float64(nanos[0])
		r.Existing = r.Absent
		return r
	}
	text := func(rows []*cell.Result) string {
		var out Page
		writeComparisons(&out, rows)
		return out.String()
	}
	null := row("null", "none", 1, 1)
	null.Name = readamp.Null
	rows := []*cell.Result{null, row("siftkv", "none", 100, 200), row("pebble", "none", 500, 500),
		row("pebble", "own:10", 1000, 1000)}
	got := text(rows)
	require.Equal(t, 4, strings.Count(got, "times as fast"), "two rows, two kinds")
	require.Contains(t, got, "Existing keys, against pebble own:10 (1,000 ns/op):")
	require.Regexp(t, `siftkv none +10 times as fast  \(5.00 to 10 within a repetition\)`, got)
	require.Contains(t, text(rows[:3]), "against pebble none")
	require.Empty(t, text(rows[:2]))
	require.NotContains(t, got, "Inf")
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"-":          perOp(engine.Unknown, 10),
		"0":          perOp(0, 10),
		"0.0100":     perOp(10, 1000),
		"1.000":      perOp(1000, 1000),
		"12.3":       perOp(123, 10),
		"912":        perOp(9123, 10),
		"1,345":      perOp(13449, 10),
		"0.950":      percent(0.0095),
		"1.14":       percent(0.0114),
		"0.0117":     percent(0.000117),
		"50.0":       percent(0.5),
		"9.99":       ratio(9.994),
		"90":         ratio(89.8),
		"1,234,567":  count(1234567),
		"-1,000":     count(-1000),
		"999":        count(999),
		"1,235":      whole(1234.5),
		"1 row":      times(1, "row"),
		"2,000 rows": times(2000, "row"),
	} {
		require.Equal(t, want, got)
	}
}
