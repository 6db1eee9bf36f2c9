package property_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/scale"
)

func TestDrawsAreTheSameEachTime(t *testing.T) {
	draw := func() (drawn []uint64) {
		property.Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Uint64().Draw(t, "n")) })
		return drawn
	}
	first := draw()
	require.Len(t, first, scale.Fewer(property.Usual, property.Usual/4))
	if scale.Long() {
		require.NotEqual(t, first, draw())
	} else {
		require.Equal(t, first, draw())
	}
}
