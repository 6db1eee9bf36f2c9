package kv

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// An iterator that is positioned fetches what all files have there side by side, in all ways.
func TestIteratorsOfAnObjectStoreFetchSideBySide(t *testing.T) {
	for _, partition := range []int{0, 64} {
		synctest.Test(t, func(t *testing.T) {
			s, o := newFarStore(), farOptions()
			o.IndexPartition = partition
			db, _ := s.fill(t, o, farYoung)
			most := 1
			if partition > 0 {
				most = 2 // leaves first
			}
			for name, move := range map[string]func(it *Iterator) bool{
				"First": (*Iterator).First, "Last": (*Iterator).Last,
				"SeekGE": func(it *Iterator) bool { return it.SeekGE([]byte{0x80}) },
				"SeekLT": func(it *Iterator) bool { return it.SeekLT([]byte{0x80}) },
			} {
				it, err := db.NewIter(nil)
				require.NoError(t, err)
				gets, trips := s.costs(func() { require.True(t, move(it), name) })
				require.LessOrEqual(t, trips, most+2, "%s, with what is beyond the end of a block or two", name)
				require.LessOrEqual(t, gets, (farYoung+1)*most+4, name)
				require.GreaterOrEqual(t, gets, farYoung+1, name)
				require.NoError(t, it.Close())
			}
			require.NoError(t, db.Close())
		})
	}
}
