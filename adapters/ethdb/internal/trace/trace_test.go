package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/lookuptrace/tracetest"
	"github.com/siftkv/siftkv/kv"
)

// A small load leaves a store that is closed, and a trace that is the same again.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	make := func(name string) (store, trace string, c tracetest.Count) {
		store, trace = filepath.Join(dir, name), filepath.Join(dir, name+".trace")
		require.NoError(t, run(settings{keys: 1000, ops: 20, seed: 1, store: store, trace: trace}))
		return store, trace, tracetest.Read(t, trace)
	}
	store, trace, count := make("first")
	require.Greater(t, count.Found, 1000)
	require.Greater(t, count.Absent, 1000)
	require.Greater(t, count.Found+count.Absent, count.Distinct, "keys are asked for again")
	_, _, again := make("second")
	require.Equal(t, count, again)
	require.Error(t, run(settings{keys: 1000, ops: 1, store: store, trace: trace}), "it overwrites nothing")

	db, err := kv.Open(store, &kv.Options{ReadOnly: true})
	require.NoError(t, err)
	files := 0
	for _, level := range db.Metrics().Levels {
		files += level.Files
	}
	require.Positive(t, files)
	require.NoError(t, db.Close())
}
