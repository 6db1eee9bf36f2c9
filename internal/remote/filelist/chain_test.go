package filelist

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// What may follow a whole list.
func TestEditsHaveLimits(t *testing.T) {
	limits := EditLimits{}.WithDefaults()
	for name, c := range map[string]struct {
		whole, before, edits, size int
		want                       bool
	}{
		"a short list":         {16<<10 - 1, 0, 0, 100, false},
		"one edit of it":       {16 << 10, 0, 0, 100, true},
		"a second":             {16 << 10, 1, 100, 100, false},
		"a quarter":            {64 << 10, 3, 16<<10 - 100, 100, true},
		"more than a quarter":  {64 << 10, 3, 16<<10 - 100, 101, false},
		"the last of a chain":  {64 << 20, 255, 0, 100, true},
		"a chain that is long": {64 << 20, 256, 0, 100, false},
	} {
		chain := Chain{Slots: make([]uint64, 1+c.before), whole: c.whole, edits: c.edits}
		require.Equal(t, c.want, chain.allows(c.size, limits), name)
	}
}

// A flush of a store with many files publishes little, on average with the whole lists.
func TestPublicationsOfManyFilesAreSmall(t *testing.T) {
	files := scale.Count(10_000, 100_000)
	const perFile, perEdit, flushes = 100, 150, 300 // bytes of the manifest, and publications
	list := &List{Current: sampleList(t).Current, Manifest: make([]byte, perFile*files),
		Files: map[uint64]File{}}
	list.Manifest = slices.Grow(list.Manifest, perEdit*flushes)
	for num := range uint64(files) {
		list.Files[1+num] = File{WriterID: WriterID{Epoch: 1, Nonce: 1}, Size: 64 << 20}
	}
	var chain Chain
	limits, bytes, longest := EditLimits{}.WithDefaults(), 0, 0
	for slot := range uint64(flushes) {
		b := Body{}
		chain = chain.Publish(&b, 1+slot, list, false, limits)
		bytes += b.size()
		longest = max(longest, len(chain.Slots))
		next := *list
		next.Manifest = append(next.Manifest, make([]byte, perEdit)...)
		next.Files = maps.Clone(next.Files)
		next.Files[uint64(files)+1+slot] = File{WriterID: WriterID{Epoch: 1, Nonce: 1}, Size: 1000}
		list = &next
	}
	t.Logf("%d files: %d bytes for each of %d publications, %d slots", files, bytes/flushes, flushes, longest)
	require.Less(t, bytes/flushes, 64<<10)
	require.LessOrEqual(t, longest, 257)
}
