package metrics

// Scans say what iterators did in the files of one level. With every First, Last and seek an iterator visits
// one file of each sorted run: the first that may have keys between where it begins and its bound. A step may take it
// to the next file. It does not visit a file for keys that only range tombstones add to the file's span. At each visit
// a filter denies the file, or it is read. Then the first entry is within the iterator's bounds, or there is none.
// Entries are all versions of keys, tombstones among them.
//
// An iterator adds its counts when it is closed, and after every hundred seeks or so.
type Scans struct {
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
func (c Scans) RangeFilterChecks() uint64 {
	return c.DeniedByRange + c.RangeFalsePositives + c.RangeTruePositives
}

// fields lists the counters, for Add and Sub.
func (c *Scans) fields() []*uint64 {
	return []*uint64{
		&c.Files, &c.DeniedByPrefix, &c.DeniedByRange, &c.Empty, &c.WithEntries,
		&c.RangeFalsePositives, &c.RangeTruePositives,
		&c.BlocksFromCache, &c.BlocksFromDisk, &c.IndexLeavesFromDisk, &c.BytesFromDisk, &c.BytesDecoded,
	}
}

// Add returns the sums of two sets of counters.
func (c Scans) Add(o Scans) Scans {
	addTimes(1, c.fields(), o.fields())
	return c
}

// Sub returns c - o: what was counted between the two.
func (c Scans) Sub(o Scans) Scans {
	addTimes(-1, c.fields(), o.fields())
	return c
}

// Scans returns the scan counters of all levels together.
func (m *Store) Scans() Scans {
	var sum Scans
	for i := range m.Levels {
		sum = sum.Add(m.Levels[i].Scan)
	}
	return sum
}
