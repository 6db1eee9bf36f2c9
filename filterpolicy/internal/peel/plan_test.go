package peel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// The footer tells the layout that was built, or that of no keys.
func TestFinishDescribesTheLayout(t *testing.T) {
	plan := Plan{Family: frame.Xor, Bits: 9, Layout: roomy(3)}
	const params = 9 | (3|0xf0000)<<8
	for _, n := range []int{0, 1, 1000} {
		data, ok := plan.Finish([]byte("before"), collected(numbers(n)...))
		require.True(t, ok)
		require.Equal(t, "before", string(data[:6]))
		cells, footer := frame.Peek(data[6:], frame.Xor)
		require.Equal(t, uint32(params), footer.Params())
		require.Equal(t, uint64(n), footer.Keys())
		if n == 0 {
			require.Empty(t, cells)
			require.Zero(t, footer.Units())
			continue
		}
		require.True(t, holds(cells, footer.Units(), 9))
		bits, fpr := plan.Expected(n)
		require.InDelta(t, 8*len(data[6:]), bits*float64(n), 1e-6)
		require.InDelta(t, 1.0/512, fpr, 1e-12)
	}
}

func TestFinishDeclines(t *testing.T) {
	var calls []int
	plan := Plan{Family: frame.Xor, Bits: 9, Layout: failing(sizes, &calls)}
	data, ok := plan.Finish([]byte("before"), collected(slices.Repeat(numbers(1000), 2)...))
	require.False(t, ok)
	require.Equal(t, "before", string(data))
}

func TestExpectedAtTheEdges(t *testing.T) {
	plan := Plan{Family: frame.Xor, Bits: 9, Layout: roomy(3)}
	for keys, want := range map[int]float64{-1: 0, 0: 0, math.MaxInt: 1, maxCells: 1} {
		bits, fpr := plan.Expected(keys)
		require.Zero(t, bits)
		require.InDelta(t, want, fpr, 0)
	}
}
