package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

func TestInversesAreInverses(t *testing.T) {
	for i := range uint64(1000) {
		h := Good(1).At(i)
		require.Equal(t, h, hash64.Mix(unmix(h)))
		require.Equal(t, h, hash64.Round(unround(h)))
	}
}

func TestInputsAreDistinct(t *testing.T) {
	for _, in := range append(append([]Input{Good(0), Good(1)}, Unmixed...), Hostile...) {
		seen := map[uint64]bool{}
		for i := range uint64(20_000) {
			require.False(t, seen[in.At(i)], "%q repeats at %d", in.Name, i)
			seen[in.At(i)] = true
		}
	}
}
