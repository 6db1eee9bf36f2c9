package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConcurrentPackagesOfTheTree(t *testing.T) {
	packages, err := find("../../..")
	require.NoError(t, err)
	require.Subset(t, packages, []string{"kv", "internal/remote", "internal/sstable", "internal/stress",
		"filterpolicy/bloom", "objstore", "internal/storetest/values", "internal/storetest/formats"})
	for _, other := range []string{"blockindex", "internal/base", "redisfilter", "examples/transactions",
		"cmd/kvbench", "internal/storecmd"} {
		require.NotContains(t, packages, other)
	}
	packages, err = find("../../../cmd/kvbench")
	require.NoError(t, err)
	require.Contains(t, packages, "internal/compare")
	require.NotContains(t, packages, ".")
	require.NotContains(t, packages, "internal/engine/lmdb")
}

func TestGoroutinesAndLocksAreFound(t *testing.T) {
	for source, want := range map[string]struct{ shared, starts bool }{
		`package p; import "sync"; var mu sync.Mutex`:                 {shared: true},
		`package p; import "sync/atomic"; var n atomic.Int64`:         {shared: true},
		`package p; func f() { go f() }`:                              {starts: true},
		`package p; func f() { for { defer func() { go f() }() }}`:    {starts: true},
		`package p; import "sync"; func f() { g.Go(f) }`:              {shared: true, starts: true},
		`package p; import "time"; func f() { time.AfterFunc(1, f) }`: {starts: true},
		`package p; import "strings"; func f() { g.Done(); Go(f) }`:   {},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
		require.NoError(t, err)
		require.Equal(t, want.shared, isShared(file), source)
		require.Equal(t, want.starts, startsGoroutines(file), source)
	}
}
