package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

func TestRangeFiltersOfStores(t *testing.T) {
	for _, text := range []string{"none", "cut:6", "cut:6+last", "oracle", "oracle+last", "prefix:fixed:3",
		"prefix:delimiter:/,2"} {
		require.NoError(t, CheckRange(text), text)
	}
	for _, text := range []string{"", "cut", "cut:6+first", "blocked:10", "prefix:", "prefix:fixed:0", "+last"} {
		require.ErrorIs(t, CheckRange(text), bench.ErrUsage, text)
	}
}
