package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// tiny are the flags of cells of a fraction of a second.
func tiny(t *testing.T, command string, more ...string) []string {
	t.Helper()
	return append([]string{command, "--keys", "2000", "--lookups", "300", "--reps", "3", "--memtable", "256KiB",
		"--dir", t.TempDir()}, more...)
}

func TestRunPrintsAndWritesOneCell(t *testing.T) {
	t.Parallel()
	out, file := filepath.Join(t.TempDir(), "results"), filepath.Join(t.TempDir(), "r.json")
	status, stdout, stderr := kvbench(t, &program{},
		tiny(t, "run", "--filter", "cuckoo:12,4", "--shape", "young:2", "--out", out, "--json", file)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "A lookup of an absent key, by level")
	require.Contains(t, stdout, "cuckoo:12")
	require.Contains(t, stdout, "all hold")
	require.Contains(t, stderr, "look up siftkv")
	left, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, left, 1)
	a, err := os.ReadFile(filepath.Join(out, left[0].Name()))
	require.NoError(t, err)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))

	status, _, stderr = kvbench(t, &program{}, tiny(t, "run", "--quiet")...)
	require.Zero(t, status)
	require.Empty(t, stderr)
}

func TestSweepFromFlagsAndFile(t *testing.T) {
	t.Parallel()
	out, spec := filepath.Join(t.TempDir(), "results"), filepath.Join(t.TempDir(), "spec.yaml")
	require.NoError(t, os.WriteFile(spec,
		[]byte("settings: {filter: [none, blocked:10], cache: 1MiB}\n"+
			"also: [{engine: pebble, filter: own:10, keys: 77}]\n"), 0o600))
	args := tiny(t, "sweep", "--spec", spec, "--out", out)
	status, stdout, stderr := kvbench(t, &program{}, append(args, "--plan")...)
	require.Zero(t, status, stderr)
	require.Equal(t, 3, strings.Count(stdout, "keys=2000"), "a flag replaces what the file says, everywhere")
	require.NoDirExists(t, out)

	status, stdout, stderr = kvbench(t, &program{}, args...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "cells     3\n")
	require.Contains(t, stdout, "own:10")
	require.Contains(t, stderr, "cell 3 of 3 done")
	status, again, stderr := kvbench(t, &program{}, args...)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "3 of 3 cells had a result")
	require.Equal(t, stdout, again)

	status, _, stderr = kvbench(t, &program{},
		tiny(t, "sweep", "--engine", "siftkv,null", "--filter", "bloom:10,cuckoo:12,4", "--plan")...)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "left out: filter bloom:10: null has none")
}

func TestAnInterruptedSweepSaysHowToGoOn(t *testing.T) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	opened := 0
	p := &program{stdout: &out, stderr: &errs, wrap: func(_ string, s engine.Store) engine.Store {
		if opened++; opened == 3 {
			cancel()
		}
		return s
	}}
	args := tiny(t, "sweep", "--filter", "none bloom:10", "--out", filepath.Join(t.TempDir(), "results"))
	require.Equal(t, 130, p.run(ctx, append([]string{"kvbench"}, args...)))
	require.Contains(t, errs.String(), "1 of 2 cells are done")
	require.Contains(t, errs.String(), "run the same command again to go on")
	require.Empty(t, out.String())
}

func TestSpecsAreSplitWhereAFilterBegins(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"none", "bloom:10", "cuckoo:12,4,semisort", "own:10", "fuse:8,4", "oracle"},
		specs([]string{"none,bloom:10", "cuckoo:12,4,semisort own:10;fuse:8,4,oracle"}))
	require.Equal(t, []string{"none", "bloom:10", "cuckoo:12,4", "blocked:10"},
		specs([]string{"none;bloom:10  cuckoo:12,4", "; blocked:10;"}))
	require.Empty(t, specs([]string{" ; "}))
}

func TestWrongCellsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"two values":  tiny(t, "run", "--filter", "none bloom:10"),
		"engine":      tiny(t, "run", "--engine", "rocks"),
		"compaction":  tiny(t, "run", "--compaction", "sideways"),
		"combination": tiny(t, "run", "--filter", "own:10"),
		"no spec":     tiny(t, "sweep", "--spec", "/nothing/here"),
		"dir":         {"run", "--dir", "/nothing/here"},
		"keys":        tiny(t, "run", "--keys", "/nothing/here"),
		"keys as 1e6": tiny(t, "run", "--keys", "1e6"),
	} {
		status, stdout, stderr := kvbench(t, &program{}, args...)
		require.Equal(t, 2, status, "%s: %s", name, stderr)
		require.Empty(t, stdout, name)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "%s: %q", name, stderr)
	}
}

func TestDiffOfTwoSweeps(t *testing.T) {
	out := func(more ...string) string {
		dir := filepath.Join(t.TempDir(), "results")
		status, _, stderr := kvbench(t, &program{},
			tiny(t, "sweep", append([]string{"--out", dir, "--filter", "none bloom:10"}, more...)...)...)
		require.Zero(t, status, stderr)
		return dir
	}
	a, b := out(), out()
	status, stdout, stderr := kvbench(t, &program{}, "diff", a, b, "--fail-on", "blocks/op>0%", "--json",
		filepath.Join(t.TempDir(), "d.json"))
	require.Zero(t, status, stderr)
	require.Regexp(t, `counters: \d+ equal, 0 changed`, stdout, "counters are equal in two runs of one seed")
	require.Contains(t, stdout, "ns/op")

	one, err := filepath.Glob(filepath.Join(a, "*bloom*"))
	require.NoError(t, err)
	other, err := filepath.Glob(filepath.Join(b, "*none*"))
	require.NoError(t, err)
	status, stdout, stderr = kvbench(t, &program{}, "diff", one[0], other[0], "--fail-on", "absent blocks/op>0%")
	require.Equal(t, 4, status)
	change := `absent blocks/op>0%: .*: absent blocks/op [\d.]+ → [\d.]+ \((\+[\d.]+ %|from 0)\)`
	require.Regexp(t, "FAIL "+change, stdout)
	require.Regexp(t, "threshold passed: "+change, stderr)
	status, stdout, stderr = kvbench(t, &program{}, "diff", a, one[0], "--fail-on", "blocks/op>0%")
	require.Equal(t, 4, status, "a cell is gone")
	require.Contains(t, stdout, "FAIL blocks/op>0%")
	require.Contains(t, stderr, "is missing from the second set")
	status, _, stderr = kvbench(t, &program{}, "diff", a, b, "--fail-on", "blocs/op>0%")
	require.Equal(t, 2, status, stderr)
}

func TestReportWritesEveryFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "results")
	status, _, stderr := kvbench(t, &program{}, tiny(t, "sweep", "--out", out, "--filter", "none bloom:10")...)
	require.Zero(t, status, stderr)
	for format, want := range map[string]string{
		"table": "cells     2", "csv": "cell,engine,filter",
		"json": "kvbench.rows/v2",
	} {
		status, stdout, stderr := kvbench(t, &program{}, "report", out, "--format", format)
		require.Zero(t, status, stderr)
		require.Contains(t, stdout, want)
	}
	page, set := filepath.Join(dir, "r.html"), filepath.Join(dir, "set.json")
	status, stdout, stderr := kvbench(t, &program{}, "report", out, "--format", "json", "--html", page)
	require.Zero(t, status, stderr)
	require.FileExists(t, page)
	require.NoError(t, os.WriteFile(set, []byte(stdout), 0o600))
	status, _, stderr = kvbench(t, &program{}, "diff", out, set)
	require.Zero(t, status, "what report prints as JSON is a set of results: %s", stderr)
}

func TestEnv(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := kvbench(t, &program{}, "env")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "GOMAXPROCS")
	status, stdout, _ = kvbench(t, &program{}, "env", "--json", "--dir", t.TempDir())
	require.Zero(t, status)
	require.Contains(t, stdout, `"go_version"`)
}

func TestReportShowsOneTable(t *testing.T) {
	t.Parallel()
	out, page := filepath.Join(t.TempDir(), "results"), filepath.Join(t.TempDir(), "page.html")
	status, _, stderr := kvbench(t, &program{},
		tiny(t, "sweep", "--filter", "none bloom:10", "--cache", "1MiB,64KiB", "--out", out)...)
	require.Zero(t, status, stderr)
	table := []string{"report", out, "--metric", "absent blocks/op", "--rows", "filter", "--columns", "cache"}
	status, stdout, stderr := kvbench(t, &program{},
		append(table, "--format", "markdown", "--html", page, "--log-y", "--title", "Blocks, by cache")...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "| filter | 64KiB | 1MiB |\n")
	require.Contains(t, stdout, "| none | 1.0")
	drawn, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(drawn), `"charts":[{"id":"blocks-by-cache"`)
	status, stdout, _ = kvbench(t, &program{}, append(table, "--html", "-")...)
	require.Zero(t, status)
	require.True(t, strings.HasPrefix(stdout, "<!doctype html>"), "and no table")
	status, stdout, _ = kvbench(t, &program{}, append(table, "--format", "csv", "--where", "filter=none")...)
	require.Zero(t, status)
	require.Equal(t, 3, strings.Count(stdout, "\n"))

	for says, args := range map[string][]string{
		"need --metric":        {"report", out, "--columns", "cache"},
		"by --html":            append(table, "--x", "store filter-bits/key"),
		"table, markdown":      append(table, "--format", "json"),
		"by --metric":          {"report", out, "--format", "markdown"},
		"there are existing":   {"report", out, "--metric", "absent blox/op"},
		"the settings are eng": append(table, "--where", "bits=4"),
	} {
		status, _, stderr := kvbench(t, &program{}, args...)
		require.Equal(t, 2, status, says)
		require.Contains(t, stderr, says)
	}
}

// A mover replaces a directory by a file when it is first written to, so that nothing in it can be removed by its path.
type mover struct {
	strings.Builder
	dir string
}

func (m *mover) Write(p []byte) (int, error) {
	if m.Len() == 0 {
		if err := errors.Join(os.Rename(m.dir, m.dir+"-moved"), os.WriteFile(m.dir, nil, 0o600)); err != nil {
			return 0, err
		}
	}
	return m.Builder.Write(p)
}

func TestResultsOutliveADirectoryThatIsNotRemoved(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"readamp", "--engine", "siftkv", "--filter", "none", "--keys", "1000", "--lookups", "100", "--reps", "1",
			"--dir"},
		{"trace", "make", "--keys", "1000", "--lookups", "100"},
	} {
		dir := filepath.Join(t.TempDir(), "dir")
		require.NoError(t, os.Mkdir(dir, 0o700))
		out, errs := &mover{dir: dir}, &strings.Builder{}
		p := &program{stdout: out, stderr: errs}
		require.Equal(t, 1, p.run(t.Context(), slices.Concat([]string{"kvbench"}, args, []string{dir})), errs)
		require.NotEmpty(t, out.String())
	}
}

func TestReportOfRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := filepath.Join(dir, "a.json")
	for _, name := range []string{"compare", "other"} {
		r := tidy.New(name, "about", map[string]uint64{"keys": 1<<60 + 1}, environ.Environment{})
		r.Add(tidy.Of("engine", "siftkv"), "per_second", "1/s", 12345)
		require.NoError(t, results.WriteJSON(filepath.Join(dir, name+".json"), r))
		require.NoError(t, results.WriteJSON(one, r))
	}
	status, stdout, stderr := kvbench(t, &program{}, "report", one, "--metric", "per_second")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "engine", "and no filter, which no cell has")
	status, stdout, stderr = kvbench(t, &program{}, "report", one, "--format", "json")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "1152921504606846977", "with all digits")
	status, _, stderr = kvbench(t, &program{}, "report", dir, "--format", "csv")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "several results")
	status, stdout, stderr = kvbench(t, &program{}, "diff", one, one, "--csv", "-")
	require.Zero(t, status, stderr)
	require.True(t, strings.HasPrefix(stdout, "cell,of,verdict,metric,repetition,value,unit\n"), stdout)
}
