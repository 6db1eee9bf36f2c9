package version

import (
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

func TestTablesThatReferToBlobFiles(t *testing.T) {
	t.Parallel()
	table := func(num uint64, lo, hi string, blobs ...uint64) manifest.Table {
		m := manifest.Table{Num: num, Size: 100, Smallest: []byte(lo), Largest: []byte(hi), Entries: 9}
		for _, b := range blobs {
			m.Blobs = append(m.Blobs, manifest.BlobRef{Num: b, Records: 1, Bytes: 20})
		}
		return m
	}
	e := &manifest.Edit{}
	for _, num := range []uint64{20, 21, 22} {
		e.AddedBlobs = append(e.AddedBlobs, manifest.BlobFile{Num: num, ID: 1, Size: 1000, Records: 10,
			ValueBytes: 500})
	}
	e.Added = append(e.Added,
		manifest.AddedTable{Level: 6, Table: table(1, "a", "b", 20)},
		manifest.AddedTable{Level: 6, Table: table(2, "c", "d", 21, 22)},
		manifest.AddedTable{Level: 6, Table: table(3, "e", "f")},
		manifest.AddedTable{Level: 6, Table: table(4, "g", "h", 20, 21)},
		manifest.AddedTable{Level: 3, Table: table(5, "a", "h", 22)},
		manifest.AddedTable{Level: 0, Table: table(6, "b", "c", 21)})
	v, err := (&Version{}).Apply(e)
	require.NoError(t, err)
	nums := func(blobs ...uint64) (nums []uint64) {
		of := map[uint64]bool{}
		for _, b := range blobs {
			of[b] = true
		}
		for _, t := range v.ReferringTo(of) {
			nums = append(nums, t.Num)
		}
		return nums
	}
	require.Equal(t, []uint64{1, 4}, nums(20))
	require.Equal(t, []uint64{6, 2, 4}, nums(21), "the newest run first")
	require.Equal(t, []uint64{5, 1, 2, 4}, nums(20, 22))
	require.Nil(t, nums(23))
}
