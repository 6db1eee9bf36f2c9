package sstable

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// A few tombstones beside any number of values are all in the sample, older versions and operands are not, and what is
// estimated of many keys is what a sum over all would be.
func TestASampleOfKeys(t *testing.T) {
	c := NewCount()
	for i := range 100_000 {
		user, kind := fmt.Appendf(nil, "%06d", i), base.KindSet
		switch {
		case i%1000 == 0:
			kind = base.KindDelete
		case i%10 == 1:
			kind = base.KindMerge
		}
		c.Add(base.MakeKey(user, 9, kind), nil)
		if kind != base.KindMerge {
			c.Add(base.MakeKey(user, 8, base.KindDelete), nil)
		}
	}
	n := 0
	deletes := c.Keys().Estimate(func(keys [][]byte) (sum uint64) {
		n += len(keys)
		require.LessOrEqual(t, len(keys), sampledKeys)
		for _, k := range keys {
			if string(k[3:]) == "000" {
				sum++
			}
		}
		return sum
	})
	require.EqualValues(t, 100, deletes)
	require.Greater(t, n, 100+sampledKeys/2-1)
	all := c.Keys().Estimate(func(keys [][]byte) uint64 { return uint64(len(keys)) })
	require.InDelta(t, 100_000, all, 10_100, "operands alone are left out")
	require.Zero(t, NewCount().Keys().Estimate(nil))
}
