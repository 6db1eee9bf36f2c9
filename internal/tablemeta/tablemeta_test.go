package tablemeta

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
)

// keys are the properties of a file with these as its smallest and largest key.
func keys(smallest, largest string) *sstable.FileInfo {
	return &sstable.FileInfo{Properties: sstable.Properties{Entries: 2, Smallest: []byte(smallest),
		Largest: []byte(largest)}}
}

func TestBoundsSpanKeysAndTombstones(t *testing.T) {
	t.Parallel()
	tomb := func(start string, end []byte) rangedel.Tombstone {
		return rangedel.Tombstone{Start: []byte(start), End: end}
	}
	none := &sstable.FileInfo{}
	for name, c := range map[string]struct {
		info      *sstable.FileInfo
		tombs     []rangedel.Tombstone
		smallest  string
		largest   []byte // nil: no bound
		exclusive bool
	}{
		"keys alone":          {keys("b", "d"), nil, "b", []byte("d"), false},
		"the empty key alone": {keys("", ""), nil, "", []byte{}, false},
		"a tombstone alone":   {none, []rangedel.Tombstone{tomb("a", []byte("c"))}, "a", []byte("c"), true},
		"within the keys": {keys("b", "f"), []rangedel.Tombstone{tomb("c", []byte("d"))}, "b", []byte("f"),
			false},
		"before the keys": {keys("b", "d"), []rangedel.Tombstone{tomb("", []byte("c"))}, "", []byte("d"), false},
		"after the keys": {keys("b", "d"), []rangedel.Tombstone{tomb("c", []byte("e"))}, "b", []byte("e"),
			true},
		"up to the last key": {keys("b", "d"), []rangedel.Tombstone{tomb("c", []byte("d"))}, "b", []byte("d"),
			false},
		"just over the last key": {keys("b", "d"), []rangedel.Tombstone{tomb("c", []byte("d\x00"))}, "b",
			[]byte("d\x00"), true},
		"without a bound":    {keys("b", "d"), []rangedel.Tombstone{tomb("c", nil)}, "b", nil, false},
		"a bound after none": {none, []rangedel.Tombstone{tomb("c", nil), tomb("a", []byte("x"))}, "a", nil, false},
	} {
		for range 2 {
			m := Of(7, c.info, c.tombs)
			require.Equal(t, uint64(7), m.Num, name)
			require.Equal(t, c.smallest, string(m.Smallest), name)
			require.NotNil(t, m.Smallest, name)
			require.Equal(t, c.largest, m.Largest, name)
			require.Equal(t, c.exclusive, m.LargestExclusive, name)
			slices.Reverse(c.tombs)
		}
	}
}

func TestNothingOfTheTombstonesIsKept(t *testing.T) {
	t.Parallel()
	tombs := []rangedel.Tombstone{{Start: []byte("a"), End: []byte("z")}}
	m := Of(1, keys("b", "c"), tombs)
	tombs[0].Start[0], tombs[0].End[0] = 'x', 'x'
	require.Equal(t, "a", string(m.Smallest))
	require.Equal(t, "z", string(m.Largest))
}

func TestReferencesToBlobFilesGoIntoTheManifest(t *testing.T) {
	t.Parallel()
	info := keys("b", "c")
	require.Nil(t, Of(1, info, nil).Blobs)
	info.Blobs = sstable.BlobRefs{{Num: 9, ID: 1, Records: 2, Bytes: 3}, {Num: 14, ID: 4, Records: 5, Bytes: 6}}
	require.Equal(t, []manifest.BlobRef{{Num: 9, Records: 2, Bytes: 3}, {Num: 14, Records: 5, Bytes: 6}},
		Of(1, info, nil).Blobs)
}
