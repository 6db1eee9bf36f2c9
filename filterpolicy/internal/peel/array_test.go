package peel

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Packed cells agree with a plain slice of them, and a key matches its own
// fingerprint and no other.
func TestArrayAgreesWithASlice(t *testing.T) {
	const cells = 40
	random := rand.New(rand.NewPCG(1, 2))
	for bits := uint64(minBits); bits <= maxBits; bits++ {
		for arity := 3; arity <= 4; arity++ {
			array, model := make([]byte, arraySize(cells, bits)), make([]uint64, cells)
			require.True(t, holds(array, cells, bits))
			for _, own := range random.Perm(cells - 4) {
				p := Places{uint32(own), cells - 3, cells - 2, cells - 1}
				z := random.Uint64()
				set(array, bits, arity, []uint64{z}, []uint32{uint32(own)}, []Places{p})
				model[own] = z & (1<<bits - 1)
				for i, want := range model {
					require.Equal(t, want, word(array, uint64(i), bits)&(1<<bits-1))
				}
				var v View
				require.True(t, v.Over(array, cells, bits, 7))
				for _, flip := range []uint64{0, 1, 1 << (bits - 1), 1 << bits} {
					want := flip == 0 || flip == 1<<bits
					require.Equal(t, want, v.Match3(z^flip, uint64(own), cells-3, cells-2), "%d bits", bits)
					require.Equal(t, want, v.Match4(z^flip, uint64(own), cells-3, cells-2, cells-1), "%d bits", bits)
				}
			}
		}
	}
	var v View
	require.True(t, v.Over(nil, 0, 8, 7))
	require.False(t, v.Match3(1, 2, 3, 4), "no cells hold nothing")
	require.False(t, v.Match4(1, 2, 3, 4, 5))
	require.False(t, v.Over(make([]byte, 46), 40, 8, 7), "a byte short")
	require.False(t, v.Match3(1, 2, 3, 4), "an array that was refused is not read")
}

func TestBounds(t *testing.T) {
	for _, bits := range []uint64{0, 3, 33, 1 << 40} {
		require.False(t, holds(make([]byte, 7), 0, bits))
	}
	require.False(t, holds(make([]byte, 100), maxCells+1, 8))
	require.False(t, holds(make([]byte, 7), 1<<61, 8), "a size that wraps")
	require.False(t, fits(maxCells+1, 8))
	require.Equal(t, strconv.IntSize == 64, fits(maxCells, 8), "it is 4 GiB")
}

func TestParseBits(t *testing.T) {
	for text, want := range map[string]uint8{
		"4": 4, "32": 32, "rate=0.5": minBits, "rate=0.0625": 4, "rate=0.0624": 5, "rate=0.000000000232830644": maxBits,
	} {
		got, err := ParseBits(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"3", "33", "rate=0.51", "rate=0.00000000023"} {
		_, err := ParseBits(text)
		require.Error(t, err, text)
	}
}
