package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// TestRestKeepsTheLevels fills a last level and young files above it, and checks
// that Rest waits for compactions without merging all levels into one.
func TestRestKeepsTheLevels(t *testing.T) {
	v := newValues(t)
	policy, err := filterpolicy.Parse("bloom:10")
	require.NoError(t, err)
	const n, budget = 4000, 5000
	s, err := openSiftKVTree(t.TempDir(), settings, policy,
		Tree{FileBytes: 16 << 10, BaseLevelBytes: 16 << 10, FilterBudgetBytes: budget})
	require.NoError(t, err)
	fillLevels(t, s, v, n)
	shape, err := s.Shape()
	require.NoError(t, err)
	require.False(t, shape.Settled())
	require.GreaterOrEqual(t, len(shape.Levels), 3)
	require.Equal(t, 2, shape.Levels[0].Files, "22 files of level 0, merged by fours")
	require.EqualValues(t, n, shape.Levels[len(shape.Levels)-1].Entries)
	require.InEpsilon(t, budget, shape.Total().FilterBytes, 0.15)
	require.Greater(t, shape.Levels[0].BitsPerKey(), shape.Levels[len(shape.Levels)-1].BitsPerKey()+3)

	require.NoError(t, s.Rest(t.Context()))
	again, err := s.Shape()
	require.NoError(t, err)
	require.Equal(t, shape, again, "a store at rest stays as it is")
	ask(t, s, v, Get, Existing, n)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Rest(ctx), context.Canceled)
	require.NoError(t, s.Close())
}
