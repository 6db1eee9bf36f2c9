package fuse

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/collect"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
	"github.com/siftkv/siftkv/internal/golden"
)

// firstAttempts returns the share of builds that succeed at once.
func firstAttempts(t *testing.T, arity int, n uint64, builds int) float64 {
	t.Helper()
	good := 0
	for build := range uint64(builds) {
		var hashes collect.Hashes
		for i := range n {
			hashes.Add(i | build<<40)
		}
		_, made, ok := peel.Build(nil, &hashes, 8, func(keys uint64, growth int) peel.Layout {
			require.Zero(t, growth, "eight attempts failed")
			l := layoutFor(arity, keys, growth)
			return &l
		})
		hashes.Reset()
		require.True(t, ok)
		if made.Seed == 0 {
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
	var s strings.Builder
	s.WriteString(`# Sizes of fuse filters, simulated

Cells per key by the number of keys and of places per key, the share of first
attempts at building that succeed, and for comparison the cells per key that the
authors' code takes.

Written by ` + "`go test ./filterpolicy/fuse -run Golden -update`" + `; the seeds are fixed.

| places | keys | segment | cells per key | first attempts | published |
|---:|---:|---:|---:|---:|---:|
`)
	for arity := 3; arity <= 4; arity++ {
		for _, n := range []uint64{10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000} {
			l := layoutFor(arity, n, 0)
			cells, _ := l.Size()
			good := firstAttempts(t, arity, n, int(min(200, max(5, 300_000/n))))
			fmt.Fprintf(&s, "| %d | %d | %d | %.3f | %.0f %% | %.3f |\n", arity, n, l.length, float64(cells)/float64(n), 100*good, published(arity, n))
			require.GreaterOrEqual(t, good, 0.5, "%d places, %d keys", arity, n)
		}
	}
	golden.File(t, "simulation.md", s.String())
}

// Places are distinct and inside for every size, and sizes neither jump nor wrap.
func TestLayoutsOfAnySize(t *testing.T) {
	for arity := 3; arity <= 4; arity++ {
		for n := uint64(1); n < 1<<32; n += n/3 + 1 {
			for growth := range 4 {
				l := layoutFor(arity, n, growth)
				cells, places := l.Size()
				require.Equal(t, arity, places)
				require.Zero(t, cells%l.length)
				require.LessOrEqual(t, l.log, uint64(maxLog))
				require.GreaterOrEqual(t, cells, n)
				require.LessOrEqual(t, cells, 2*n+3*n/(1+n/200)+uint64(growth)*n)
			}
		}
	}
}
