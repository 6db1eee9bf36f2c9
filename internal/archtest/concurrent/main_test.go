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
	require.Subset(t, packages, []string{"kv", "internal/remote", "internal/sstable", "filterpolicy/bloom", "objstore"})
	for _, other := range []string{"blockindex", "internal/base", "redisfilter", "examples/transactions",
		"internal/storecmd", "internal/bench/engine/lmdb"} {
		require.NotContains(t, packages, other)
	}
}

func TestGoroutinesAndLocksAreFound(t *testing.T) {
	for source, want := range map[string]bool{
		"package p; import \"sync\"; var mu sync.Mutex":            true,
		"package p; import \"sync/atomic\"; var n atomic.Int64":    true,
		"package p; func f() { go f() }":                           true,
		"package p; func f() { for { defer func() { go f() }() }}": true,
		"package p; import \"strings\"; var b strings.Builder":     false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
		require.NoError(t, err)
		require.Equal(t, want, isConcurrent(file), source)
	}
}
