package hash64

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func listOf(hashes ...uint64) *List {
	l := new(List)
	for _, h := range hashes {
		l.Add(h)
	}
	return l
}

// The first seed is always the same. The others are those of the set of hashes, and each further one is another.
func TestSeedsAreThoseOfTheSet(t *testing.T) {
	a, b := listOf(1, 2, 3), listOf(3, 1, 2, 1, 3)
	seen := map[uint32]bool{}
	for attempt := range 32 {
		require.Equal(t, Seed(a, attempt), Seed(b, attempt))
		seen[Seed(a, attempt)] = true
	}
	require.Len(t, seen, 32)
	require.Zero(t, Seed(a, 0))
	for _, other := range []*List{listOf(1, 2), listOf(1, 2, 3, 4), listOf(1, 2, 5), listOf(0)} {
		require.Zero(t, Seed(other, 0))
		require.NotContains(t, seen, Seed(other, 1))
	}
}
