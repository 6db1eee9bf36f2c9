package kv

import "github.com/siftkv/siftkv/internal/iterator"

// ScanCounters say what iterators did in the files of one level. With every First, Last and seek an iterator visits
// one file of each sorted run: the first that may have keys between where it begins and its bound. A step may take it
// to the next file. It does not visit a file for keys that only range tombstones add to the file's span. At each visit
// a filter denies the file, or it is read. Then the first entry is within the iterator's bounds, or there is none.
// Entries are all versions of keys, tombstones among them.
//
// An iterator adds its counts when it is closed, and after every hundred seeks or so.
type ScanCounters struct {
	Files          uint64 // DeniedByPrefix + DeniedByRange + Empty + WithEntries
	DeniedByPrefix uint64 // no key with the prefix that all keys within the bounds have; see Options.Prefix
	DeniedByRange  uint64 // no key within the bounds; see Options.RangeFilter
	Empty          uint64 // read, and nothing within the bounds
	WithEntries    uint64 // read, with entries within the bounds

	RangeFalsePositives uint64 // of Empty, the range filter said maybe
	RangeTruePositives  uint64 // of WithEntries, the range filter said maybe

	BlocksFromCache     uint64 // data blocks, those of steps too
	BlocksFromDisk      uint64
	IndexLeavesFromDisk uint64 // leaves of partitioned indexes
	BytesFromDisk       uint64 // of these blocks and leaves, as stored
	BytesDecoded        uint64 // of the same, decompressed
}

// RangeFilterChecks returns how many times a range filter was asked. It is not asked where a file's first or last key
// says the same.
func (c ScanCounters) RangeFilterChecks() uint64 {
	return c.DeniedByRange + c.RangeFalsePositives + c.RangeTruePositives
}

// RangeFalsePositiveRate returns the share that range filters did not rule out, of the files without entries within
// the bounds about which they were asked; 0 if there were none.
func (c ScanCounters) RangeFalsePositiveRate() float64 {
	if n := c.DeniedByRange + c.RangeFalsePositives; n > 0 {
		return float64(c.RangeFalsePositives) / float64(n)
	}
	return 0
}

// fields lists the counters, for Add and Sub.
func (c *ScanCounters) fields() []*uint64 {
	return []*uint64{
		&c.Files, &c.DeniedByPrefix, &c.DeniedByRange, &c.Empty, &c.WithEntries,
		&c.RangeFalsePositives, &c.RangeTruePositives,
		&c.BlocksFromCache, &c.BlocksFromDisk, &c.IndexLeavesFromDisk, &c.BytesFromDisk, &c.BytesDecoded,
	}
}

// Add returns the sums of two sets of counters.
func (c ScanCounters) Add(o ScanCounters) ScanCounters {
	fields := c.fields()
	for i, f := range o.fields() {
		*fields[i] += *f
	}
	return c
}

// Sub returns c - o: what was counted between the two.
func (c ScanCounters) Sub(o ScanCounters) ScanCounters {
	fields := c.fields()
	for i, f := range o.fields() {
		*fields[i] -= *f
	}
	return c
}

// Scans returns the scan counters of all levels together.
func (m *Metrics) Scans() ScanCounters {
	var sum ScanCounters
	for i := range m.Levels {
		sum = sum.Add(m.Levels[i].Scan)
	}
	return sum
}

// scanCounters count scans in one level, on one stripe.
type scanCounters struct {
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

// add adds what an iterator counted.
func (c *scanCounters) add(o *iterator.ScanCounts) {
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
func (c *scanCounters) sum() ScanCounters {
	plain := c.plain.Load()
	s := ScanCounters{
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

// seeksPerCount is how many seeks of an iterator are counted together at the most.
const seeksPerCount = 128

// countScans adds what the iterator's inputs counted to the store's counters.
func (i *cursor) countScans() {
	i.seeks = 0
	levels := &i.db.counters.stripes[i.stripe].levels
	i.parts.Scans(func(level int, c *iterator.ScanCounts) { levels[level].scans.add(c) })
}
