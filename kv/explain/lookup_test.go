package explain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/sstable"
)

func TestLookupAsText(t *testing.T) {
	e := &Lookup{Key: []byte("k"), Hash: 1, Found: true, CoveredBy: 7, Operands: 2,
		Blob: &BlobValue{File: "000011.blob", Offset: 32, Stored: 65, Size: 700},
		Steps: []Step{
			{Source: "memtable", Level: -1, Verdict: RuledOutAsEmpty},
			{Source: "000004.sst", Verdict: RuledOutByMemory},
			{Source: "000005.sst", Level: 6, Verdict: ReadPresent,
				Probe: sstable.Probe{IndexLookup: true, Filter: sstable.Maybe, BlocksFromDisk: 1}},
		}}
	require.Equal(t, strings.TrimLeft(`
lookup of "k" (hash 0000000000000001): found=true
  a range tombstone of sequence 7 covers the key
  the value is merged from 2 parts
  the value is in blob file 000011.blob at offset 32: 65 bytes to read for a value of 700
  memtable                     empty
  L0 000004.sst                ruled out by memory of the filter's false positives
  L6 000005.sst                read, key is present (filter: maybe; blocks: 0 from cache, 1 from disk)
`, "\n"), e.String())
}

func TestScanAsText(t *testing.T) {
	e := &Scan{LowerBound: []byte("a"), Steps: []Step{
		{Source: "memtable", Level: -1, Verdict: ReadEmpty},
		{Source: "000004.sst", Level: 1, Verdict: RuledOutByRangeFilter},
		{Source: "000005.sst", Level: 1, Verdict: ReadEntries, Probe: sstable.Probe{BlocksFromCache: 2}},
	}}
	e.OutOfBounds[1] = 3
	require.Equal(t, strings.TrimLeft(`
scan from "a" to none
  memtable                     read, nothing within the bounds
  L1 000004.sst                ruled out by range filter
  L1 000005.sst                read, has entries within the bounds (blocks: 2 from cache, 0 from disk)
  L1, files: 3                 ruled out by bounds
`, "\n"), e.String())
}
