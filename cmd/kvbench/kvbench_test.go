package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/objstore/s3"
)

// withS3 is the variable of the environment that gives kvbench a client of S3.
const withS3 = "KVBENCH_TEST_S3"

// TestMain is kvbench itself if a test has started it so, or as one of its workers.
func TestMain(m *testing.M) {
	if os.Getenv(withS3) != "" {
		openS3 = s3.OpenURL
	}
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		main()
	}
	clitest.Main(m, main)
}

// readResult reads the result that a command wrote as JSON. It holds every number of the
// text that the command printed.
func readResult[R any](t *testing.T, path, printed string, text func(io.Writer, *R) error) *R {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	result := new(R)
	require.NoError(t, json.Unmarshal(data, result))
	var again bytes.Buffer
	require.NoError(t, text(&again, result))
	require.Equal(t, printed, again.String())
	return result
}

// requireColumns fails for a column of the tables of a result that shows nothing in any row, except for some.
func requireColumns(t *testing.T, r *tidy.Result, except ...string) {
	t.Helper()
	grids := report.TidyGrids(r)
	require.NotEmpty(t, grids)
	for _, g := range grids {
		for i, c := range g.Columns {
			shows := slices.ContainsFunc(g.Rows, func(row []report.Item) bool {
				return row[i].Text != "-" && row[i].Text != ""
			})
			assert.True(t, shows || slices.Contains(except, c.Name), "column %q of %q shows nothing", c.Name, g.Title)
		}
	}
}

// kvbench runs a command line and returns its exit status and output.
func kvbench(t *testing.T, p *program, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	p.stdout, p.stderr = &out, &err
	status = p.run(t.Context(), append([]string{"kvbench"}, args...))
	return status, out.String(), err.String()
}

// quick are the flags of a run of a second or less.
func quick(t *testing.T, more ...string) []string {
	t.Helper()
	if !slices.Contains(more, "--keys") {
		more = append(more, "--keys", "2000")
	}
	return append([]string{"readamp", "--lookups", "300", "--reps", "2", "--budget", "none", "--dir", t.TempDir()},
		more...)
}

func TestReadampOnEveryEngine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	status, stdout, stderr := kvbench(t, &program{}, quick(t, "--budget", "bloom:10", "--json", path)...)
	require.Zero(t, status, stderr)
	for _, row := range []string{
		"null", "siftkv none", "siftkv bloom:10", "siftkv blocked:10", "siftkv cuckoo:12",
		"pebble none", "pebble bloom(10)", "pebble iterator bloom(10)", "pebble siftkv blocked:10",
	} {
		require.GreaterOrEqual(t, strings.Count(stdout, "\n"+row+" "), 2, "a line in each table for %s", row)
	}
	require.Contains(t, stdout, "all hold")
	require.Contains(t, stdout, "does not consult the filters of the last level")
	require.Contains(t, stderr, "repetition 2 of 2")
	require.NotContains(t, stdout, "repetition 2 of 2", "progress is not on standard output")

	set := *readResult(t, path, stdout, func(w io.Writer, set *[]*cell.Result) error { return report.ReadAmp(w, *set) })
	require.Equal(t, "kvbench", set[0].Environment.Argv[0])
	rows := 1 + 5 + len(readamp.Engines()) - 1 // null, SiftKV with each filter, and the others
	require.Len(t, set, rows+2)
	require.Contains(t, stdout, "Filter budget: bloom:10")
	require.Equal(t, 2000, set[rows].Keys.Present)
	require.Greater(t, set[rows].Sum.Value, set[rows+1].Sum.Value, "a lookup costs less at the same memory")

	for _, args := range [][]string{{"report", path}, {"diff", path, path}} {
		status, stdout, stderr = kvbench(t, &program{}, args...)
		require.Zero(t, status, stderr)
		require.NotEmpty(t, stdout)
	}
}

func TestReadampBudgetFromTheCommandLine(t *testing.T) {
	only := []string{"--engine", "siftkv", "--filter", "none", "--budget"}
	status, stdout, stderr := kvbench(t, &program{}, quick(t, append(only, "blocked:9")...)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "\nsiftkv uniform blocked:9 ")
	require.Contains(t, stdout, "\nsiftkv budget blocked:9 ")
	status, stdout, stderr = kvbench(t, &program{}, quick(t, append(only, "none")...)...)
	require.Zero(t, status, stderr)
	require.NotContains(t, stdout, "budget")
}

func TestReadampOnAFile(t *testing.T) {
	t.Parallel()
	var words strings.Builder
	for i := range 1000 {
		words.WriteString(strings.Repeat("ab", i%5) + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + "\r\n")
	}
	path := filepath.Join(t.TempDir(), "words")
	require.NoError(t, os.WriteFile(path, []byte(words.String()), 0o600))
	status, stdout, stderr := kvbench(t, &program{},
		quick(t, "--keys", path, "--engine", "siftkv,pebble/own:10", "--filter", "none cuckoo:12,4")...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, path)
	require.Contains(t, stdout, "siftkv cuckoo:12")
	require.NotContains(t, stdout, "pebble none")
}

// lossy is a store that loses one key in ten.
type lossy struct{ engine.Store }

func (s lossy) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := s.Store.NewReader(a, k)
	return lossyReader{r}, err
}

type lossyReader struct{ engine.Reader }

func (r lossyReader) Get(dst, key []byte) ([]byte, bool, error) {
	if key[len(key)-1]%10 == 0 {
		return dst, false, nil
	}
	return r.Reader.Get(dst, key)
}

// padded is a store that counts one file too many per lookup.
type padded struct{ engine.Store }

func (s padded) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := s.Store.NewReader(a, k)
	return paddedReader{r}, err
}

type paddedReader struct{ engine.Reader }

func (r paddedReader) Counters() (engine.Counters, error) {
	c, err := r.Reader.Counters()
	c.Total.FilterChecks += c.Lookups
	return c, err
}

func TestAWrongAnswerIsStatus3(t *testing.T) {
	p := &program{wrap: func(store string, s engine.Store) engine.Store {
		if store == "siftkv none" {
			return lossy{s}
		}
		return s
	}}
	status, stdout, stderr := kvbench(t, p, quick(t)...)
	require.Equal(t, 3, status)
	require.Empty(t, stdout)
	require.Regexp(t, `kvbench: siftkv none: wrong answer for the existing key ".*" `+
		`\(hex [0-9a-f]{32}\): not found\n$`, stderr)
}

func TestABrokenIdentityIsStatus3AfterTheReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	p := &program{wrap: func(store string, s engine.Store) engine.Store {
		if store == "siftkv blocked:10" {
			return padded{s}
		}
		return s
	}}
	status, stdout, stderr := kvbench(t, p, quick(t, "--json", path, "--engine", "siftkv")...)
	require.Equal(t, 3, status)
	require.Contains(t, stdout, "BROKEN: siftkv blocked:10")
	require.Contains(t, stderr, "identity broken")
	require.FileExists(t, path)
}

func TestCompareInProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.json")
	dir := t.TempDir()
	status, stdout, stderr := kvbench(t, &program{}, "compare", "--engine", "siftkv,pebble", "--keys", "2000",
		"--reps", "2", "--seconds", "0.002",
		"--workload", "load,absent,scan-10,memory,set-sync", "--memtable", "1MiB", "--dir", dir, "--json", path)
	require.Zero(t, status, stderr)
	for _, word := range []string{"compression snappy", "compression none", "\nabsent ", "\nscan of 10 ", "Loads",
		"memory after lookups", "cache 64 MiB"} {
		require.Contains(t, stdout, word)
	}
	require.Contains(t, stderr, "load pebble, none")

	result := readResult(t, path, stdout, report.Tidy)
	requireColumns(t, result)
	require.Equal(t, tidy.Schema, result.Schema)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestScaleFromTheCommandLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.json")
	status, stdout, stderr := kvbench(t, &program{}, "scale", "--keys", "2000", "--reps", "1", "--seconds", "0.002",
		"--memtable", "1MiB", "--json", path)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "Bytes per key")
	result := readResult(t, path, stdout, report.Tidy)
	for _, row := range slices.Clone(result.Rows) { // growth is from one size to another
		row.Cell = row.Cell.With("keys", 4000)
		result.Rows = append(result.Rows, row)
	}
	requireColumns(t, result)
	require.Equal(t, tidy.Schema, result.Schema)
	status, csv, stderr := kvbench(t, &program{}, "scale", "--keys", "2000", "--reps", "1", "--seconds", "0.002",
		"--memtable", "1MiB", "--csv", "-")
	require.Zero(t, status, stderr)
	require.True(t, strings.HasPrefix(csv, "engine,keys,metric,repetition,value,unit\nsiftkv,2000,load,0,"), csv)
}

func TestColdFromTheCommandLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.json")
	status, stdout, stderr := kvbench(t, &program{}, "scale", "--cold", "--keys", "2000", "--memory", "4MiB",
		"--lookups", "600", "--variant", "default xor:8+index:1KiB", "--json", path)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "siftkv xor:8+index:1KiB")
	require.Contains(t, stdout, "pebble-iterator")
	result := readResult(t, path, stdout, report.Tidy)
	var unknown []string
	device := measure.DeviceReadsOf(t.TempDir())
	if !device.Bytes.Known() {
		unknown = append(unknown, "device\nbytes")
	}
	if !device.Requests.Known() { // the directory is not on one device
		unknown = append(unknown, "requests")
	}
	requireColumns(t, result, unknown...)
	require.Equal(t, "cold", result.Experiment)
}

func TestProcsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.json")
	status, stdout, stderr := kvbench(t, &program{}, "scale", "--procs", "1,16", "--goroutines", "20", "--keys",
		"2000", "--reps", "1", "--seconds", "0.002", "--json", path)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "set: nanoseconds of waits for locks")
	require.Contains(t, stdout, "Throughput with GOMAXPROCS 16, in parts of that with 1\n")
	result := readResult(t, path, stdout, report.Tidy)
	require.Equal(t, "contend", result.Experiment)
}

func TestObjectsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.json")
	dir := t.TempDir()
	status, stdout, stderr := kvbench(t, &program{}, "objects", "--keys", "3000", "--lookups", "100", "--reps", "2",
		"--filter", "none blocked:10", "--cache", "0,1MiB", "--memory", "0", "--young", "2", "--delay", "1ms",
		"--get-price", "2", "--json", path, "--dir", dir)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "$2 per 1,000 GET, $0.005 per 1,000 PUT and LIST")
	require.Contains(t, stdout, "2 young ones")
	require.NotContains(t, stdout, "short")
	result := readResult(t, path, stdout, report.Tidy)
	requireColumns(t, result)
	require.Equal(t, tidy.Schema, result.Schema)
	require.Contains(t, result.About, "(directory)")
	cells := result.Cells("filter", "shape", "cache")
	require.Len(t, cells, 8)
	require.InDelta(t, 2000, result.Values(cells[0], "present dollars")[0], 1e-9)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestUsageErrorsAreStatus2(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"unknown command": {"readapm"},
		"unknown flag":    {"readamp", "--filterz", "none"},
		"not a number":    {"readamp", "--reps", "many"},
		"no such filter":  {"filters", "--filter", "blocked:ten"},
		"no range filter": {"filters", "--ranges", "--filter", "blocked:10"},
		"no such set":     {"filters", "--ranges", "--sets", "cities"},
		"not a size":      {"readamp", "--cache", "64 parsecs"},
		"progress mode":   {"readamp", "--progress", "loud"},
		"engine":          quick(t, "--engine", "oracle"),
		"filter":          quick(t, "--filter", "sieve:10"),
		"budget":          quick(t, "--budget", "sieve:10"),
		"missing file":    quick(t, "--keys", "/nothing/here"),
		"too few keys":    quick(t, "--keys", "1"),
		"missing dir":     quick(t, "--dir", "/nothing/here"),
		"compression":     quick(t, "--compression", "lz4"),
		"compare engine":  {"compare", "--engine", "oracle"},
		"scale":           {"scale", "--keys", "3"},
		"cold":            {"scale", "--cold", "--keys", "3"},
		"cold and procs":  {"scale", "--cold", "--procs", "2"},
		"procs":           {"scale", "--procs", "0"},
		"goroutines":      {"scale", "--procs", "1", "--goroutines", "0"},
		"cold memory":     {"scale", "--cold", "--memory", "1"},
		"cold variant":    {"scale", "--cold", "--variant", "sieve:10"},
		"cold room":       {"scale", "--cold", "--keys", "1000000000", "--value-size", "1000000"},
		"objects":         {"objects", "--filter", "sieve:10"},
		"objects in S3":   {"objects", "--s3", "s3://u:HUSH@bucket?x=HUSH"},
		"workload":        {"compare", "--workload", "idle"},
	} {
		status, stdout, stderr := kvbench(t, &program{}, args...)
		require.Equal(t, 2, status, "%s: %s", name, stderr)
		require.Empty(t, stdout, name)
		last := strings.TrimSuffix(stderr, "\n")
		last = last[strings.LastIndexByte(last, '\n')+1:]
		require.True(t, strings.HasPrefix(last, "kvbench: "), "%s: %q", name, stderr)
		require.NotContains(t, stderr, "HUSH", name)
		require.Equal(t, name == "objects in S3", strings.Contains(last, "go install -tags s3 "), last)
	}
}

func TestMistypedWordsNameTheRightOne(t *testing.T) {
	t.Parallel()
	for word, args := range map[string][]string{
		`"readamp"`: {"readapm"}, `"filters"`: {"filter"}, `"--lookups"`: {"readamp", "--lookupz", "9"},
		`"--budget"`: {"readamp", "--bugdet", "none"},
	} {
		status, _, stderr := kvbench(t, &program{}, args...)
		require.Equal(t, 2, status)
		require.Contains(t, stderr, "did you mean "+word+"?; see kvbench --help")
	}
}

func TestInterruptIsStatus130(t *testing.T) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{stdout: &out, stderr: &errs, wrap: func(store string, s engine.Store) engine.Store {
		if store == "pebble none" {
			cancel()
		}
		return s
	}}
	dir := t.TempDir()
	require.Equal(t, 130, p.run(ctx, append([]string{"kvbench"}, quick(t, "--dir", dir)...)))
	require.Contains(t, errs.String(), "interrupted")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestHelpAndVersionAreStatus0(t *testing.T) {
	t.Parallel()
	status, stdout, _ := kvbench(t, &program{}, "--help")
	require.Zero(t, status)
	require.Contains(t, stdout, "readamp")
	require.Contains(t, stdout, "objects")
	status, stdout, _ = kvbench(t, &program{}, "readamp", "--help")
	require.Zero(t, status)
	for _, word := range []string{"--keys", "--filter=", "(default 64MiB)", "none;bloom:10;blocked:10;cuckoo:12",
		"Example"} {
		require.Contains(t, stdout, word)
	}
	status, stdout, _ = kvbench(t, &program{}, "--version")
	require.Zero(t, status)
	require.True(t, strings.HasPrefix(stdout, "kvbench "), stdout)
}

func TestRangeFiltersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := []string{"--json", filepath.Join(dir, "ranges.json"), "--csv", filepath.Join(dir, "ranges.csv")}
	status, stdout, stderr := kvbench(t, &program{}, append([]string{"filters", "--ranges", "--keys", "500", "--probes",
		"1000", "--reps", "1", "--sets", "random,series", "--filter", "cut:5"}, files...)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "random: 500 keys")
	require.Contains(t, stdout, "all of an absent user")
	result := readResult(t, files[1], stdout, report.Tidy)
	requireColumns(t, result)
	require.Equal(t, "ranges", result.Experiment)
	data, err := os.ReadFile(files[3])
	require.NoError(t, err)
	require.Equal(t, 24+3, strings.Count(string(data), ",asked,"))
}

func TestFiltersFromTheCommandLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "filters.json")
	status, stdout, stderr := kvbench(t, &program{}, "filters", "--keys", "500,1000", "--probes", "2000", "--reps",
		"1", "--json", path)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "1,000 keys")
	require.Contains(t, stdout, "blocked:10")
	result := readResult(t, path, stdout, report.Tidy)
	requireColumns(t, result)
	require.Equal(t, []string{"500", "1000"}, result.Each("keys"))
}
