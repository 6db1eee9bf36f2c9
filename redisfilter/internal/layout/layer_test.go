package layout

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/internal/property"
)

func TestKeysOfAtTheEdges(t *testing.T) {
	l := Layer{Keys: 10, Shards: 1, Lines: 1, Probes: 7}
	require.Zero(t, l.KeysOf(0))
	require.Equal(t, float64(MaxKeys), l.KeysOf(l.Lines*MarkPosition))
	require.Equal(t, float64(MaxKeys), l.KeysOf(math.MaxInt32))
	require.False(t, l.Full(0))
}

// What a shard of a partition holds is what a set of all lines holds there.
func TestPlacesAreThoseOfALocalSet(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 5000).Draw(t, "partitions")
		l := Layer{Keys: 1, Shards: 1, Lines: rapid.IntRange(1, 1000).Draw(t, "lines"), Probes: 1}
		spot := blocked.Locate(rapid.Uint64().Draw(t, "hash"))
		part, within := spot.Split(partitions)
		_, line := l.Place(within)
		require.Equal(t, spot.Line(partitions*l.Lines), part*l.Lines+line)
	})
}
