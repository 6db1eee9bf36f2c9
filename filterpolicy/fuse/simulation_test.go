package fuse_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/fuse"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/scale"
)

// firstAttempts returns the share of builds that succeed at once.
func firstAttempts(t *testing.T, arity int, n uint64, builds int) float64 {
	t.Helper()
	good := 0
	for build := range uint64(builds) {
		var hashes hash64.List
		for i := range n {
			hashes.Add(i | build<<40)
		}
		failed, growth, ok := fuse.Attempts(arity, &hashes)
		hashes.Reset()
		require.True(t, ok)
		require.Zero(t, growth, "eight attempts failed")
		if failed == 0 {
			good++
		}
	}
	return float64(good) / float64(builds)
}

// published returns the cells per key of the paper's sizes.
func published(arity int, n uint64) float64 {
	x := math.Log(float64(n))
	log, factor := math.Floor(x/math.Log(3.33)+2.25), max(1.125, 0.875+0.25*math.Log(1e6)/x)
	if arity == 4 {
		log, factor = math.Floor(x/math.Log(2.91)-0.5), max(1.075, 0.77+0.305*math.Log(6e5)/x)
	}
	length := math.Exp2(min(18, log))
	return math.Ceil(float64(n)*factor/length) * length / float64(n)
}

// The committed table is what the code does, and first attempts mostly succeed.
func TestGoldenSimulation(t *testing.T) {
	scale.OneGoroutine(t, "a simulation has no other")
	var table strings.Builder
	table.WriteString(`# Sizes of fuse filters, simulated

Cells per key by the number of keys and of places per key, the share of first
attempts at building that succeed, and for comparison the cells per key that the
authors' code takes.

Written by ` + "`go test ./filterpolicy/fuse -run Golden -update`" + `; the seeds are fixed.

| places | keys | segment | cells per key | first attempts | published |
|---:|---:|---:|---:|---:|---:|
`)
	for arity := 3; arity <= 4; arity++ {
		for _, n := range []uint64{10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000} {
			table.WriteString(row(t, arity, n))
		}
	}
	golden.File(t, "simulation.md", table.String())
}

// row simulates filters of a size.
func row(t *testing.T, arity int, n uint64) string {
	t.Helper()
	cells, segment := fuse.Shape(arity, n)
	good := firstAttempts(t, arity, n, int(min(200, max(5, 300_000/n))))
	require.GreaterOrEqual(t, good, 0.5, "%d places, %d keys", arity, n)
	return fmt.Sprintf("| %d | %d | %d | %.3f | %.0f %% | %.3f |\n", arity, n, segment, float64(cells)/float64(n),
		100*good, published(arity, n))
}
