package quotient

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSelectBitUndoesRank(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []uint64{1, 1 << 63, ^uint64(0), 1<<63 | 1, 0x8080808080808080}
	for range 1000 {
		words = append(words, random.Uint64(), random.Uint64()&random.Uint64()&random.Uint64(),
			random.Uint64()|random.Uint64())
	}
	for _, x := range words {
		for n := range uint64(bits.OnesCount64(x)) {
			at := selectBit(x, n)
			require.NotZero(t, x>>at&1)
			require.Equal(t, int(n), bits.OnesCount64(x&(1<<at-1)))
		}
	}
}

// Runs that crowd beyond what an offset counts are refused, and dst stays as it was.
func TestEncodeRefusesCrowds(t *testing.T) {
	crowd := func(n uint64) func(yield func(uint64) bool) {
		return func(yield func(uint64) bool) {
			for i := range n {
				if !yield(i) {
					return
				}
			}
		}
	}
	_, blocks, ok := encode(nil, 64, 32, crowd(maxOffset+64))
	require.True(t, ok)
	require.Equal(t, uint64(maxOffset+64+63)/64, blocks)
	data, _, ok := encode([]byte("x"), 64, 32, crowd(maxOffset+64+1))
	require.False(t, ok)
	require.Equal(t, "x", string(data))
}
