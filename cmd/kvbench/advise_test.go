package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/advice"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/kv"
)

// A store and a trace are made, and advice on them is verified, printed, and written as JSON and as a page.
func TestAdvise(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	status, stdout, stderr := kvbench(t, &program{}, "trace", "make", made, "--keys", "5000", "--shape", "young:4",
		"--cache", "128KiB", "--lookups", "3000", "--workload", "zipfian")
	require.Equal(t, bench.StatusOK, status, stderr)
	store, trace := filepath.Join(made, "store"), filepath.Join(made, "lookups.trace")
	require.Equal(t, store+"\n"+trace+"\n", stdout)
	html, result := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.json")
	status, stdout, stderr = kvbench(t, &program{}, "advise", store, trace, "--verify", "--html", html, "--json",
		result, "--device", "80us", "--dir", dir)
	require.Equal(t, bench.StatusOK, status, stderr)
	for _, want := range []string{"Recommendation", "Predicted, measured, per lookup", "What cannot be known from here",
		"now", "What more or less memory would buy", "6,000 lookups"} {
		require.Contains(t, stdout, want)
	}
	data, err := os.ReadFile(result)
	require.NoError(t, err)
	var r advice.Result
	require.NoError(t, json.Unmarshal(data, &r))
	require.Equal(t, advice.Schema, r.Schema)
	require.NotEmpty(t, r.Checks)
	require.InDelta(t, 80_000, r.Advice.Prices.Read, 0)
	require.Equal(t, 5, len(r.Shape))
	require.Equal(t, int64(128<<10), r.Advice.Now.Cache)
	if options := r.Advice.Recommendation.Options; options != "" {
		_, err = kv.ParseOptions(options)
		require.NoError(t, err)
	}
	page, err := os.ReadFile(html)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(page), "<svg"))
	require.Equal(t, 2, strings.Count(string(page), "</svg>"))
	require.NotContains(t, string(page), "<?xml")
	require.NotContains(t, string(page), "<script")
	left, err := filepath.Glob(filepath.Join(dir, "kvbench-*"))
	require.NoError(t, err)
	require.Empty(t, left, "copies are removed")
}

func TestAdviseRefuses(t *testing.T) {
	t.Parallel()
	trace := writeTrace(t, nil, true)
	for name, args := range map[string][]string{
		"no store":         {"advise", t.TempDir(), trace},
		"no trace":         {"advise", t.TempDir(), t.TempDir()},
		"several values":   {"trace", "make", filepath.Join(t.TempDir(), "a"), "--filter", "none;bloom:10"},
		"another engine":   {"trace", "make", filepath.Join(t.TempDir(), "a"), "--engine", "pebble", "--keys", "100"},
		"no lookups":       {"advise", t.TempDir(), trace, "--lookups", "0"},
		"an unknown file":  {"advise", t.TempDir(), trace + ".none"},
		"a negative price": {"advise", t.TempDir(), trace, "--device=-1s"},
	} {
		status, _, stderr := kvbench(t, &program{}, args...)
		require.Equal(t, bench.StatusUsage, status, name+": "+stderr)
	}
}
