package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/advice"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// writeTrace records lookups of an application: some keys often, some in vain if it is
// said so.
func writeTrace(t *testing.T, o *lookuptrace.Options, absent bool) string {
	t.Helper()
	db, err := kv.Open("", &kv.Options{InMemory: true})
	require.NoError(t, err)
	key := func(i int) []byte { return fmt.Appendf(nil, "user/%06d/profile", i) }
	const n = 3000
	for i := range n {
		require.NoError(t, db.Set(key(2*i), []byte("value"), kv.NoSync))
	}
	path := filepath.Join(t.TempDir(), "app.trace")
	f, err := os.Create(path)
	require.NoError(t, err)
	tracer, err := lookuptrace.New(f, o)
	require.NoError(t, err)
	db.TraceLookups(tracer)
	random := rand.New(rand.NewPCG(1, 2))
	for range 4 * n {
		i := 2 * int(float64(n)*random.Float64()*random.Float64())
		if absent && random.IntN(3) == 0 {
			i++
		}
		_, err := db.Has(key(i))
		require.NoError(t, err)
	}
	require.NoError(t, tracer.Close())
	require.Zero(t, tracer.Stats().Dropped)
	require.NoError(t, f.Close())
	require.NoError(t, db.Close())
	return path
}

// trace make makes a store, which is that of a cell, and a trace of lookups in it, which siftkv advise takes.
func TestTraceMake(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	status, stdout, stderr := kvbench(t, &program{}, "trace", "make", dir, "--keys", "5000", "--shape", "young:4",
		"--cache", "128KiB", "--lookups", "3000", "--workload", "zipfian")
	require.Zero(t, status, stderr)
	store, trace := filepath.Join(dir, "store"), filepath.Join(dir, "lookups.trace")
	require.Equal(t, store+"\n"+trace+"\n", stdout)
	db, err := kv.Open(store, &kv.Options{ReadOnly: true})
	require.NoError(t, err)
	f, err := os.Open(trace)
	require.NoError(t, err)
	r, err := advice.For(t.Context(), db, &advice.Options{Trace: f})
	require.NoError(t, err)
	require.Equal(t, 6000, r.Sample.Lookups)
	require.NoError(t, errors.Join(db.Close(), f.Close()))
	for _, wrong := range [][]string{{"--filter", "none;bloom:10"}, {"--engine", "pebble", "--keys", "100"}} {
		status, _, stderr := kvbench(t, &program{}, append([]string{"trace", "make", dir}, wrong...)...)
		require.Equal(t, 2, status, stderr)
	}
	taken := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(taken, "lookups.trace"), 0o700))
	status, _, stderr = kvbench(t, &program{}, "trace", "make", taken, "--keys", "1000", "--lookups", "100")
	require.Equal(t, 2, status, "a file that cannot be made: %s", stderr)
}

func TestTraceInfo(t *testing.T) {
	t.Parallel()
	path := writeTrace(t, nil, true)
	status, stdout, stderr := kvbench(t, &program{}, "trace", "info", path, "--json",
		filepath.Join(t.TempDir(), "i.json"))
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "with hashes of keys, recorded")
	require.Regexp(t, `lookups +12,000`, stdout)
	require.NotContains(t, stdout, "Warnings")

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.trace")
	require.NoError(t, os.WriteFile(cut, data[:len(data)-7], 0o600))
	status, stdout, stderr = kvbench(t, &program{}, "trace", "info", cut)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "the trace has no end")

	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(cut, data, 0o600))
	for _, command := range []string{"info", "replay"} {
		status, stdout, stderr = kvbench(t, &program{}, "trace", command, cut)
		require.Equal(t, 1, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "checksum")
		require.Contains(t, stderr, "cut.trace")
	}
	require.NoError(t, os.WriteFile(cut, []byte("a\nb\n"), 0o600))
	for _, args := range [][]string{{"info", cut}, {"replay", cut}, {"info", "/nothing/here"},
		{"replay", path, "--keys", "9"}, {"replay", path, "--workload", "uniform"}} {
		status, _, stderr = kvbench(t, &program{}, append([]string{"trace"}, args...)...)
		require.Equal(t, 2, status, "%v: %s", args, stderr)
	}
}

func TestTraceReplayOnSeveralEngines(t *testing.T) {
	t.Parallel()
	path := writeTrace(t, &lookuptrace.Options{Keys: true}, true)
	small := []string{"--reps", "2", "--memtable", "256KiB", "--dir", t.TempDir(), "--quiet"}
	for _, cell := range [][]string{
		{"siftkv", "cuckoo:12"}, {"siftkv", "none"}, {"pebble", "own:10"}, {"goleveldb", "own:10"}, {"bbolt", "none"},
	} {
		args := append([]string{"trace", "replay", path, "--engine", cell[0], "--filter", cell[1]}, small...)
		status, stdout, stderr := kvbench(t, &program{}, args...)
		require.Zero(t, status, "%v: %s", cell, stderr)
		require.Contains(t, stdout, "Replay of ", cell)
		require.Contains(t, stdout, "all hold")
	}
	status, stdout, stderr := kvbench(t, &program{},
		append([]string{"sweep", "--keys", path, "--workload", "replay,uniform", "--lookups", "500", "--out",
			filepath.Join(t.TempDir(), "r")}, small...)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "cells     2")
}

func TestATraceIsReplayedInAFullerStore(t *testing.T) {
	t.Parallel()
	path := writeTrace(t, &lookuptrace.Options{Keys: true}, true)
	out := filepath.Join(t.TempDir(), "results")
	args := []string{"--reps", "2", "--memtable", "256KiB", "--dir", t.TempDir(), "--quiet", "--out", out}
	status, stdout, stderr := kvbench(t, &program{},
		append([]string{"trace", "replay", path, "--threads", "3", "--fill", "2000"}, args...)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "2000 like them that are never looked up")
	require.Contains(t, stdout, "Absent keys, as the trace asked for them")
	require.Contains(t, stdout, "lookups\u00a0/s")
	status, _, stderr = kvbench(t, &program{}, "run", "--fill", "9")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "are those of workload replay")
}

func TestATraceWithoutAbsentKeysIsReplayed(t *testing.T) {
	t.Parallel()
	path := writeTrace(t, &lookuptrace.Options{OneIn: 5}, false)
	out := filepath.Join(t.TempDir(), "results")
	args := []string{"--reps", "2", "--memtable", "256KiB", "--dir", t.TempDir(), "--quiet"}
	status, stdout, stderr := kvbench(t, &program{},
		append([]string{"trace", "replay", path, "--out", out}, args...)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "one key in 5")
	page := filepath.Join(t.TempDir(), "r.html")
	for _, format := range []string{"table", "csv", "json"} {
		status, _, stderr = kvbench(t, &program{}, "report", out, "--format", format, "--html", page)
		require.Zero(t, status, stderr)
	}
	status, _, stderr = kvbench(t, &program{}, "diff", out, out)
	require.Zero(t, status, stderr)
	status, _, stderr = kvbench(t, &program{}, append([]string{"run", "--keys", path}, args...)...)
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "take workload replay")
}
