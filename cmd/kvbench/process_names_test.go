package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell/celltest"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// A name of a file may have any byte but NUL and the slash.
func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	const name, other = "\xff\xfe,a", "\x80\n\\,b"
	parent := t.TempDir()
	dir := filepath.Join(parent, name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, m := range measurers(t) {
		args := append(m.args, "--json", filepath.Join(dir, other))
		if m.stores {
			args = append(args, "--dir", dir)
		}
		r := process(t, args...)
		require.Zero(t, r.Status, "%s: %s", m.name, r.Stderr)
		require.Equal(t, []string{other}, clitest.Names(t, dir), m.name)
		require.Equal(t, []string{name}, clitest.Names(t, parent), "%s made no directory of another name", m.name)
		require.NoError(t, os.Remove(filepath.Join(dir, other)))
	}

	words := filepath.Join(dir, "words\xff")
	require.NoError(t, os.WriteFile(words,
		[]byte(strings.Join(strings.Split("one two three four five six seven eight nine ten", " "), "\n")), 0o600))
	out := filepath.Join(dir, "out\xff")
	sweep := []string{"sweep", "--keys=" + strings.ReplaceAll(words, ",", `\,`), "--lookups", "10", "--reps", "1",
		"--out", out, "--dir", dir}
	r := process(t, sweep...)
	require.Zero(t, r.Status, r.Stderr)
	r = process(t, sweep...)
	require.Zero(t, r.Status, r.Stderr)
	require.Contains(t, r.Stderr, "1 of 1 cells had a result")
	page := filepath.Join(dir, "page\xff")
	r = process(t, "report", out, "--html", page)
	require.Zero(t, r.Status, r.Stderr)
	require.ElementsMatch(t, []string{"words\xff", "out\xff", "page\xff"}, clitest.Names(t, dir))
}

// What belongs to somebody else is neither read nor replaced, and is no damage.
func TestFilesOfAnotherUser(t *testing.T) {
	t.Parallel()
	set := savedResults(t)
	single := filepath.Join(set, celltest.Samples()[1].Name+".json")
	trace := writeTrace(t, nil, true)
	locked := filepath.Join(clitest.PublicDir(t), "locked")
	require.NoError(t, os.Mkdir(locked, 0o700))
	require.NoError(t, results.Save(locked, celltest.Samples()[1]))
	for _, name := range []string{single, trace} {
		require.NoError(t, os.Chmod(name, 0))
	}
	require.NoError(t, os.Chmod(locked, 0))                           //nolint:gosec // on purpose
	t.Cleanup(func() { require.NoError(t, os.Chmod(locked, 0o700)) }) //nolint:gosec // a directory

	for name, args := range map[string][]string{
		"results":    {"report", set},
		"directory":  {"report", locked},
		"one result": {"diff", single, single},
		"trace":      {"trace", "info", trace},
		"keys":       {"run", "--keys", single},
	} {
		r := (&clitest.Process{Args: args, Nobody: true}).Run(t)
		require.Contains(t, []int{1, 2}, r.Status, "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stderr, "permission denied", name)
		require.NotContains(t, r.Stderr, "corrupt", name)
		require.NotContains(t, r.Stderr, "damage", name)
		require.Empty(t, r.Stdout, name)
	}
}

// A file that may not be written to is not replaced either, whoever owns its directory.
func TestAFileThatMayNotBeWrittenIsNotReplaced(t *testing.T) {
	t.Parallel()
	set, dir := savedResults(t), clitest.PublicDir(t)
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // everybody may make files
	file := filepath.Join(dir, "page")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o400))
	require.NoError(t, os.Chmod(file, 0o444)) //nolint:gosec // everybody may read it
	for _, args := range [][]string{{"report", set, "--html", file}, {"diff", set, set, "--json", file}} {
		r := (&clitest.Process{Args: args, Nobody: true}).Run(t)
		require.Equal(t, 2, r.Status, r.Stderr)
		require.Contains(t, r.Stderr, "permission denied")
		require.Empty(t, r.Stdout)
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	require.Equal(t, []string{"page"}, clitest.Names(t, dir))
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, missing := filepath.Join(dir, "text"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(text, []byte("no result of anything\n"), 0o600))
	set := savedResults(t)
	for status, args := range map[int][]string{0: {"report", set}, 2: {"report", dir}} {
		require.Equal(t, status, process(t, args...).Status)
	}
	for name, c := range map[string]struct {
		status int
		args   []string
	}{
		"report":                   {0, []string{"report", set}},
		"no results":               {2, []string{"report", dir}},
		"results missing":          {2, []string{"report", missing}},
		"results are text":         {2, []string{"report", text}},
		"diff with text":           {2, []string{"diff", set, text}},
		"diff with nothing":        {2, []string{"diff", missing, set}},
		"threshold not read":       {2, []string{"diff", set, set, "--fail-on", "ns/op>many"}},
		"threshold not passed":     {0, []string{"diff", set, set, "--fail-on", "ns/op>5%"}},
		"trace is text":            {2, []string{"trace", "info", text}},
		"trace is a directory":     {2, []string{"trace", "info", dir}},
		"trace missing":            {2, []string{"trace", "info", missing}},
		"replay a directory":       {2, []string{"trace", "replay", dir}},
		"keys are a directory":     {2, []string{"run", "--keys", dir}},
		"stores in a file":         {2, []string{"run", "--dir", text}},
		"specification missing":    {2, []string{"sweep", "--spec", missing}},
		"specification of text":    {2, []string{"sweep", "--spec", text}},
		"specification, directory": {2, []string{"sweep", "--spec", dir}},
		"shell":                    {2, []string{"completion", "tcsh"}},
		"where":                    {2, []string{"report", set, "--metric", "absent blocks/op", "--where", "engine"}},
	} {
		status, stdout, stderr := kvbench(t, &program{}, c.args...)
		require.Equal(t, c.status, status, "%s: %s", name, stderr)
		if c.status != 0 {
			require.Empty(t, stdout, name)
			require.True(t, strings.HasPrefix(stderr, "kvbench: ") && strings.Count(stderr, "\n") == 1, "%s: %q",
				name, stderr)
			require.NotContains(t, stderr, "corruption", name)
		}
	}
}
