package counters

import (
	"github.com/siftkv/siftkv/kv/metrics"
)

// Prefix counts what the filters said about prefixes.
type Prefix struct{ Checks, Negatives counter }

// A Scan counts the tables that one iterator visits, in one run or several. Every seek, First and Last into a table
// is a visit, and so is moving into it from the table before. Each time the table is denied by a filter, or read. If it
// is read, the first entry met is within the iterator's bounds, or there is none.
type Scan struct {
	DeniedByPrefix uint64
	DeniedByRange  uint64
	Empty          uint64 // read, without a range filter that was asked
	FalsePositives uint64 // the range filter said maybe
	WithEntries    uint64 // read; tombstones and what is not visible are entries too
	TruePositives  uint64 // of these, those of which the range filter said maybe

	BlocksFromCache     uint64 // data blocks, those of steps too
	BlocksFromDisk      uint64
	IndexLeavesFromDisk uint64
	BytesFromDisk       uint64 // as stored
	BytesDecoded        uint64
}

// Take adds what o counts, and makes o zero. Of most iterators it is little.
func (c *Scan) Take(o *Scan) {
	if n := o.DeniedByPrefix | o.DeniedByRange | o.FalsePositives | o.TruePositives; n > 0 {
		c.DeniedByPrefix += o.DeniedByPrefix
		c.DeniedByRange += o.DeniedByRange
		c.FalsePositives += o.FalsePositives
		c.TruePositives += o.TruePositives
		o.DeniedByPrefix, o.DeniedByRange, o.FalsePositives, o.TruePositives = 0, 0, 0, 0
	}
	c.Empty += o.Empty
	c.WithEntries += o.WithEntries
	c.BlocksFromCache += o.BlocksFromCache
	o.Empty, o.WithEntries, o.BlocksFromCache = 0, 0, 0
	if o.BytesFromDisk > 0 {
		c.BlocksFromDisk += o.BlocksFromDisk
		c.IndexLeavesFromDisk += o.IndexLeavesFromDisk
		c.BytesFromDisk += o.BytesFromDisk
		c.BytesDecoded += o.BytesDecoded
		o.BlocksFromDisk, o.IndexLeavesFromDisk, o.BytesFromDisk, o.BytesDecoded = 0, 0, 0, 0
	}
}

// Scans count scans in one level, on one stripe.
type Scans struct {
	plain, // files with entries, and as many blocks from the cache
	deniedByPrefix,
	deniedByRange,
	empty,
	falsePositives,
	withEntries,
	truePositives,
	blocksFromCache,
	blocksFromDisk,
	leavesFromDisk,
	bytesFromDisk,
	bytesDecoded counter
}

// Add adds what an iterator counted.
func (c *Scans) Add(o *Scan) {
	if o.DeniedByPrefix|o.DeniedByRange > 0 {
		c.deniedByPrefix.Add(o.DeniedByPrefix)
		c.deniedByRange.Add(o.DeniedByRange)
	}
	if o.Empty > 0 {
		c.empty.Add(o.Empty)
	}
	if o.FalsePositives|o.TruePositives > 0 {
		c.falsePositives.Add(o.FalsePositives)
		c.truePositives.Add(o.TruePositives)
	}
	if o.WithEntries == o.BlocksFromCache {
		c.plain.Add(o.WithEntries)
	} else {
		c.withEntries.Add(o.WithEntries)
		c.blocksFromCache.Add(o.BlocksFromCache)
	}
	if o.BlocksFromDisk|o.IndexLeavesFromDisk > 0 {
		c.blocksFromDisk.Add(o.BlocksFromDisk)
		c.leavesFromDisk.Add(o.IndexLeavesFromDisk)
		c.bytesFromDisk.Add(o.BytesFromDisk)
		c.bytesDecoded.Add(o.BytesDecoded)
	}
}

// sum returns the counters with what is derived from them.
func (c *Scans) sum() metrics.Scans {
	plain := c.plain.Load()
	s := metrics.Scans{
		DeniedByPrefix:      c.deniedByPrefix.Load(),
		DeniedByRange:       c.deniedByRange.Load(),
		RangeFalsePositives: c.falsePositives.Load(),
		WithEntries:         c.withEntries.Load() + plain,
		RangeTruePositives:  c.truePositives.Load(),
		BlocksFromCache:     c.blocksFromCache.Load() + plain,
		BlocksFromDisk:      c.blocksFromDisk.Load(),
		IndexLeavesFromDisk: c.leavesFromDisk.Load(),
		BytesFromDisk:       c.bytesFromDisk.Load(),
		BytesDecoded:        c.bytesDecoded.Load(),
	}
	s.Empty = c.empty.Load() + s.RangeFalsePositives
	s.Files = s.DeniedByPrefix + s.DeniedByRange + s.Empty + s.WithEntries
	return s
}
