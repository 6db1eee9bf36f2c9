package storecmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// tracedStore returns the directory of a store of many files, with a trace of its lookups beside it.
func tracedStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{MemtableSize: 256 << 10, TargetFileSize: 32 << 10, BaseLevelSize: 64 << 10,
		CacheSize: 128 << 10, MaxMemtables: 4})
	require.NoError(t, err)
	const n = 12_000
	rng := rand.New(rand.NewPCG(1, 1))
	for _, i := range rng.Perm(n) {
		value := fmt.Appendf(nil, "%016x%016x%016x%016x%016x", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(),
			rng.Uint64())
		require.NoError(t, db.Set(fmt.Appendf(nil, "key/%06d", 2*i), value, kv.NoSync))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil)) // so that no compaction is due when it is opened
	for i := range 100 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key/%06d", 200*i), []byte("newer"), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	writeTrace(t, db, dir+traceSuffix, 3000, func(i int) string { return fmt.Sprintf("key/%06d", i*7919%(2*n)) })
	require.NoError(t, db.Close())
	return dir
}

// writeTrace looks so many keys up and writes their trace.
func writeTrace(t *testing.T, db *kv.DB, name string, lookups int, key func(i int) string) {
	t.Helper()
	f, err := os.Create(name)
	require.NoError(t, err)
	tracer, err := lookuptrace.New(f, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	for i := range lookups {
		_, err := db.Has([]byte(key(i)))
		require.NoError(t, err)
	}
	require.NoError(t, tracer.Close())
	require.NoError(t, f.Close())
}

func TestAdviseFromATrace(t *testing.T) {
	t.Parallel()
	dir := tracedStore(t)
	before := clitest.Names(t, dir)
	var r adviceReport
	require.NoError(t, json.Unmarshal([]byte(works(t, "advise", dir, "--json")), &r))
	require.Equal(t, 3000, r.Sample.Lookups)
	require.EqualValues(t, 128<<10, r.Now.CacheSize, "as the store was last opened")
	text := works(t, "advise", dir, dir+traceSuffix)
	for _, part := range []string{": 3000 lookups of 3000 keys and 0 scans in ", "\nConfidence: " + r.Confidence + "; ",
		" now: as files have ", "\nNot known: ", "\nTimes: "} {
		require.Contains(t, text, part)
	}
	require.Equal(t, before, clitest.Names(t, dir), "nothing is changed")

	require.Contains(t, r.Prices, "so is a read of a block")
	var priced adviceReport
	require.NoError(t, json.Unmarshal([]byte(works(t, "advise", dir, "--json", "--device", "90us", "--memory", "1MiB",
		"--filter", "none blocked:10;ribbon:8")), &priced))
	require.Contains(t, priced.Prices, "a read of a block takes 90µs, as given")
	require.Greater(t, priced.Now.Lookups.Nanos, 90_000*priced.Now.Lookups.DeviceReads)
	for _, s := range priced.Front {
		require.Contains(t, []string{"", "none", "blocked:10", "ribbon:8"}, s.Filter)
	}
	for flag, wrong := range map[string]string{"--device": "-1s", "--filter": "bluum:3", "--memory": "much"} {
		require.NotZero(t, process(t, "advise", dir, flag, wrong).Status, flag)
	}

	res := process(t, "advise", dir, dir+".none")
	require.Equal(t, statusError, res.Status)
	require.Contains(t, res.Stderr, "lookuptrace.Tracer writes a trace")
	few := dir + ".few"
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	writeTrace(t, db, few, 10, func(int) string { return "key" })
	require.NoError(t, db.Close())
	res = process(t, "advise", dir, few)
	require.Equal(t, statusError, res.Status)
	require.Contains(t, res.Stderr, "there are 10 lookups and 0 scans, and 1000 are wanted")
	res = process(t, "advise", "dir://"+dir)
	require.Equal(t, statusUsage, res.Status, res.Stderr)
	require.Contains(t, res.Stderr, "name the trace")
}

// rewritten is what apply --json says.
type rewritten struct {
	Applied      bool
	Options      string
	Files        int   `json:"rewritten_files"`
	Bytes        int64 `json:"rewritten_bytes"`
	RewriteFiles int   `json:"rewrite_files"`
	RewriteBytes int64 `json:"rewrite_bytes"`
	Words        string
}

func apply(t *testing.T, args ...string) (r rewritten) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(works(t, append([]string{"apply", "--json"}, args...)...)), &r))
	return r
}

func TestApplyWritesOptionsAndFilters(t *testing.T) {
	t.Parallel()
	dir := tracedStore(t)
	scanned := works(t, "scan", dir)
	const filter = "Filter = ribbon:8"
	dry := apply(t, dir, "--options", filter+"; CacheSize=1MiB", "--dry-run")
	require.False(t, dry.Applied)
	require.Greater(t, dry.RewriteFiles, 10)
	require.NotContains(t, statsOf(t, dir).Opened.Options, filter)

	r := apply(t, dir, "--options", filter, "--no-rewrite")
	require.Equal(t, 0, r.Files)
	require.Contains(t, statsOf(t, dir).Opened.Options, filter)
	r = apply(t, dir, "--options", filter+"\nCacheSize = 1MiB\n")
	require.True(t, r.Applied)
	require.Equal(t, []int{dry.RewriteFiles, int(dry.RewriteBytes)}, []int{r.Files, int(r.Bytes)})
	require.Equal(t, dry.Options, r.Options)
	require.Equal(t, []string{"CacheSize = 1MiB", "MemtableSize = 256KiB", "MaxMemtables = 4", filter,
		"TargetFileSize = 32KiB", "BaseLevelSize = 64KiB"}, statsOf(t, dir).Opened.Options)
	require.Zero(t, apply(t, dir, "--options", filter).Files)
	require.Equal(t, scanned, works(t, "scan", dir))
	works(t, "verify", dir)

	// The advice itself is applied if nothing else is said.
	if r = apply(t, dir); r.Applied {
		require.Equal(t, strings.TrimSpace(r.Options), strings.Join(statsOf(t, dir).Opened.Options, "\n"))
		require.Zero(t, apply(t, dir, "--options", r.Options).Files)
	} else {
		require.Contains(t, r.Words, "Keep the settings")
	}
	require.Equal(t, scanned, works(t, "scan", dir))
}

// If nothing is to be changed, files of other filters than the settings are named: of an apply that was broken off.
func TestApplySaysWhatWasLeft(t *testing.T) {
	t.Parallel()
	dir := tracedStore(t)
	apply(t, dir, "--options", "Filter = bloom:5", "--no-rewrite")
	var out strings.Builder
	p := &program{out: bufio.NewWriter(&out)}
	c := applyCommand{adviceTrace: adviceTrace{Dir: Dir{Dir: Location(dir)}}}
	require.NoError(t, c.keep(t.Context(), p, "Keep the settings."))
	require.NoError(t, p.out.Flush())
	stale := apply(t, dir, "--options", "Filter = bloom:5", "--dry-run").RewriteFiles
	require.Positive(t, stale)
	require.Contains(t, out.String(), fmt.Sprintf("Keep the settings. %d files have other filters than those", stale))
}

func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	dir := tracedStore(t)
	before := everyFile(t, dir)
	for options, want := range map[string]string{
		"Filter = brilliant":           "line 1: Filter:",
		"Sieve = 1":                    "not a field of Options",
		"Filter = bloom:8; ReadOnly=1": "neither true nor false",
		"ReadOnly = true":              "ReadOnly is not a setting of a store",
		"MaxMemtables = 1":             "MaxMemtables is 1",
	} {
		r := process(t, "apply", dir, "--options", options)
		require.Equal(t, statusUsage, r.Status, "%s: %s", options, r.Stderr)
		require.Contains(t, r.Stderr, want)
		require.Equal(t, before, everyFile(t, dir), options)
	}
	r := process(t, "apply", dir, dir+traceSuffix, "--options", "Filter = none")
	require.Equal(t, statusUsage, r.Status)
	name := filepath.Join(dir, "SIFTKV-OPTIONS")
	flip(t, name, 70)
	r = process(t, "apply", dir, "--options", "Filter = none")
	require.Equal(t, statusDamage, r.Status)
	require.Contains(t, r.Stderr, "remove the file to begin without it")
	require.NoError(t, os.Remove(name))
	require.Equal(t, "Filter = none\n", apply(t, dir, "--options", "Filter = none").Options)
}

// everyFile returns what a directory has.
func everyFile(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range clitest.Names(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		all[name] = string(data)
	}
	return all
}

// Filters of a program's own are not replaced by those of siftkv.
func TestApplyLeavesFiltersOfAProgramAlone(t *testing.T) {
	t.Parallel()
	dir := storeWith(t, &kv.Options{Merger: kv.NewMerger("mine", nil)})
	stored := statsOf(t, dir).Opened.Options
	require.Contains(t, stored, "# Merger = mine: the application's own")
	require.Contains(t, apply(t, dir, "--options", "Filter = bloom:8").Options, "Filter = bloom:8")

	own := manifest.StoredOptions{Format: 1, Release: "v1",
		Text: "# Filter = sieve:7: the application's own\nMaxMemtables = 5\n"}
	require.NoError(t, manifest.SetOptions(vfs.OS, dir, own))
	r := process(t, "apply", dir, "--options", "CacheSize = 1MiB")
	require.Equal(t, statusUsage, r.Status)
	require.Contains(t, r.Stderr, "the store's Filter is its program's own")
	require.Equal(t, "CacheSize = 1MiB\nMaxMemtables = 5\n",
		apply(t, dir, "--options", "CacheSize = 1MiB", "--no-rewrite").Options)

	own.Text = "# RangeFilter = sieve:7: the application's own\n"
	require.NoError(t, manifest.SetOptions(vfs.OS, dir, own))
	r = process(t, "apply", dir, "--options", "CacheSize = 1MiB")
	require.Equal(t, statusUsage, r.Status)
	require.Contains(t, r.Stderr, "the store's RangeFilter is its program's own")
	require.Contains(t, apply(t, dir, "--options", "RangeFilter = cut:6").Options, "RangeFilter = cut:6")
}

// A process that is killed, or interrupted, while it rewrites files leaves a whole store, and another goes on.
func TestApplyIsKilled(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Kill, os.Interrupt} {
		dir := tracedStore(t)
		scanned := works(t, "scan", dir)
		all := apply(t, dir, "--options", "Filter = ribbon:6", "--dry-run").RewriteFiles
		before := everyFile(t, dir)
		cmd := (&clitest.Process{Args: []string{"apply", dir, "--options",
			"Filter = ribbon:6; CompactionRate = 64KiB"}}).Command(t)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			news := 0 // files that were written, and the store's own of this opening
			for _, name := range clitest.Names(t, dir) {
				if _, old := before[name]; !old && strings.HasSuffix(name, ".sst") {
					news++
				}
			}
			return news >= 3
		}, time.Minute, 2*time.Millisecond)
		require.NoError(t, cmd.Process.Signal(signal))
		require.Error(t, cmd.Wait())
		if signal == os.Interrupt {
			require.Equal(t, statusInterrupted, cmd.ProcessState.ExitCode(), stderr.String())
		}
		works(t, "verify", dir)
		require.Equal(t, scanned, works(t, "scan", dir))
		rest := apply(t, dir, "--options", "Filter = ribbon:6; CompactionRate = 0").Files
		require.Positive(t, rest)
		require.Less(t, rest, all, "what was rewritten stays so")
		require.Equal(t, scanned, works(t, "scan", dir))
	}
}

// A semicolon ends a line of options, and in a quoted value it is a part of it.
func TestApplyTakesValuesWithSemicolons(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Filter = none; CacheSize=1MiB;":           "Filter = none\n CacheSize=1MiB\n",
		`Prefix = "delimiter:;"; CacheSize = 1MiB`: "Prefix = \"delimiter:;\"\n CacheSize = 1MiB",
		`Prefix="delimiter:\";" ;A = 1`:            "Prefix=\"delimiter:\\\";\" \nA = 1",
		"Prefix = delimiter:\";A = 1":              "Prefix = delimiter:\"\nA = 1",
		"A = \"1\nB = 2; C = 3":                    "A = \"1\nB = 2\n C = 3",
	} {
		require.Equal(t, want, optionLines(text), text)
	}
	dir := goldenStore(t)
	out := ok(t, "apply", dir, "--no-rewrite", "--options", `Prefix = "delimiter:;"; CacheSize = 1MiB`)
	require.Contains(t, out, "CacheSize = 1MiB\n")
	require.Contains(t, out, "Prefix = delimiter:;\n")
	require.Contains(t, ok(t, "stats", dir), "  Prefix = delimiter:;\n")
}
