package counters

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/kv/metrics"
)

// A lookup of many keys may read a part of the index for a key before another lookup finds out that the file does not
// have it. What was read is counted.
func TestReadsBeforeAKeyWasRememberedAreCounted(t *testing.T) {
	var c Level
	c.Count(&sstable.Probe{Filter: sstable.Remembered}, false)
	c.Count(&sstable.Probe{Filter: sstable.Remembered, IndexLookup: true, IndexLeavesFromDisk: 1, BytesFromDisk: 82,
		BytesDecoded: 77}, false)
	s := c.sum()
	require.Equal(t, metrics.Lookups{FilesConsidered: 2, FilterRemembered: 2, IndexLeavesFromDisk: 1, BytesFromDisk: 82,
		BytesDecoded: 77}, s)
}
