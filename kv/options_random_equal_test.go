package kv_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

// The tests of this package draw the options that the suites of internal/storetest draw.
func TestRandomOptionsAreThoseOfTheSuites(t *testing.T) {
	t.Parallel()
	styles := map[kv.CompactionStyle]bool{}
	for seed := range uint64(100) {
		ours, theirs := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))
		o, want := kv.RandomOptions(ours), stores.RandomOptions(theirs)
		kv.RandomSeparation(o, ours)
		stores.RandomSeparation(want, theirs)
		require.NotNil(t, o.Merger)
		require.NotNil(t, want.Merger)
		o.Merger, want.Merger = nil, nil // functions
		require.Equal(t, want, o)
		require.Equal(t, theirs.Uint64(), ours.Uint64(), "they draw as often")
		styles[o.Compaction] = true
	}
	require.Len(t, styles, kv.NumCompactions)
	require.Equal(t, kv.NumRecoveryModes, stores.RecoveryModes)
}
