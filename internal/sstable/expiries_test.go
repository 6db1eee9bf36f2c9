package sstable

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/stretchr/testify/require"
)

// The octiles of any number of moments are those of all of them, within what a sample of a
// thousand can tell, and exact where there are no more.
func TestOctiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7, 8, 9, 100, sampledExpiries, sampledExpiries + 1, 100_000} {
		var s expirySample
		var all []uint64
		for range n {
			moment := 1 + uint64(rng.ExpFloat64()*1e6)
			all = append(all, moment)
			s.add(moment, 1)
		}
		require.LessOrEqual(t, len(s.Taken), sampledExpiries)
		slices.Sort(all)
		o := s.octiles()
		require.True(t, slices.IsSorted(o[:]))
		for i, moment := range o {
			expired, _ := slices.BinarySearch(all, moment+1)
			want := float64(n) * float64(i+1) / 8
			if n <= sampledExpiries {
				require.GreaterOrEqual(t, expired, int(want), "%d of %d", i, n)
				require.LessOrEqual(t, float64(expired), want+1, "%d of %d", i, n)
			} else {
				require.InEpsilon(t, want, float64(expired), 0.25, "%d of %d", i, n) // 5 standard deviations
			}
		}
		require.EqualValues(t, n, o.Expired(uint64(n), all[n-1], all[n-1]))
		require.Zero(t, o.Expired(uint64(n), all[n-1], 0))
		decoder := base.Decoder{Rest: o.Append(nil)}
		require.Equal(t, o, decoder.Octiles())
		require.True(t, decoder.Done())
	}
	require.Zero(t, new(expirySample).octiles())
	require.EqualValues(t, 5, new(Octiles).Expired(5, 10, 10))
	require.Zero(t, new(Octiles).Expired(5, 10, 9), "a file that has none knows the last alone")
}
