package metrics

// Lookups say what point lookups did in one level. Every file that a lookup considers is ruled out by its
// bounds, ruled out by a range tombstone, or probed. A probe checks the filter if there is one. If the filter does not
// rule the key out, nor is it remembered to have been wrong (Options.FalsePositiveMemory), the probe looks in the
// index. If that does not rule the key out either, it reads a block.
type Lookups struct {
	FilesConsidered          uint64 // at most one per lookup and sorted run
	RuledOutByBounds         uint64
	RuledOutByRangeTombstone uint64

	FilterNegatives      uint64
	FilterTruePositives  uint64 // "maybe", and some version of the key was in the file
	FilterFalsePositives uint64 // "maybe", and none was
	FilterRemembered     uint64 // "maybe", and it was remembered that none was: nothing was read
	Unfiltered           uint64 // probes of files without a usable filter

	IndexLookups    uint64 // Unfiltered + FilterTruePositives + FilterFalsePositives
	RuledOutByIndex uint64 // the key was past the last block

	BlocksFromCache     uint64 // data blocks
	BlocksFromDisk      uint64
	IndexLeavesFromDisk uint64 // leaves of partitioned indexes
	BytesFromDisk       uint64 // of these blocks and leaves, as stored
	BytesDecoded        uint64 // of the same, decompressed

	Hits uint64 // lookups answered here, by a value or a tombstone; operands alone do not
}

// FilterChecks returns how many times a filter was checked.
func (c Lookups) FilterChecks() uint64 {
	return c.FilterNegatives + c.FilterRemembered + c.FilterTruePositives + c.FilterFalsePositives
}

// FalsePositiveRate returns the share of absent keys that filters did not rule out, whether that was paid for or
// remembered. With wrong = FilterFalsePositives + FilterRemembered, it is wrong / (wrong + FilterNegatives), or 0 if
// the sum is 0. It is the rate of the filters, which a memory of their errors does not change.
func (c Lookups) FalsePositiveRate() float64 {
	wrong := c.FilterFalsePositives + c.FilterRemembered
	if n := wrong + c.FilterNegatives; n > 0 {
		return float64(wrong) / float64(n)
	}
	return 0
}

// fields lists the counters, for Add and Sub.
func (c *Lookups) fields() []*uint64 {
	return []*uint64{
		&c.FilesConsidered, &c.RuledOutByBounds, &c.RuledOutByRangeTombstone,
		&c.FilterNegatives, &c.FilterTruePositives, &c.FilterFalsePositives, &c.FilterRemembered,
		&c.Unfiltered,
		&c.IndexLookups, &c.RuledOutByIndex,
		&c.BlocksFromCache, &c.BlocksFromDisk, &c.IndexLeavesFromDisk, &c.BytesFromDisk, &c.BytesDecoded,
		&c.Hits,
	}
}

// Add returns the sums of two sets of counters.
func (c Lookups) Add(o Lookups) Lookups {
	addTimes(1, c.fields(), o.fields())
	return c
}

// Sub returns c - o: what was counted between the two.
func (c Lookups) Sub(o Lookups) Lookups {
	addTimes(-1, c.fields(), o.fields())
	return c
}
