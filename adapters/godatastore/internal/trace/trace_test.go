package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/lookuptrace/tracetest"
	"github.com/siftkv/siftkv/kv"
)

// A small load leaves a store that is closed, and a trace that is the same again.
func TestTrace(t *testing.T) {
	base := t.TempDir()
	load := func(dir string) tracetest.Count {
		require.NoError(t, run(t.Context(), settings{keys: 1000, ops: 2000, seed: 1, dir: filepath.Join(base, dir)}))
		return tracetest.Read(t, filepath.Join(base, dir, "trace"))
	}
	count := load("first")
	require.Greater(t, count.Found, 1000)
	require.Greater(t, count.Absent, 1000)
	require.Greater(t, count.Found+count.Absent, count.Distinct, "keys are asked for again")
	require.Equal(t, count, load("second"))
	require.ErrorIs(t, run(t.Context(), settings{keys: 1000, ops: 1, dir: base}), os.ErrExist, "it overwrites nothing")

	db, err := kv.Open(filepath.Join(base, "first", "store"), &kv.Options{ReadOnly: true})
	require.NoError(t, err)
	runs := 0
	for _, level := range db.Metrics().Levels {
		runs += level.Runs
	}
	require.Positive(t, runs)
	require.NoError(t, db.Close())
}
