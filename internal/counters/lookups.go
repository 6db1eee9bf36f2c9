package counters

import (
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/kv/metrics"
)

// A Level counts the lookups and scans in one level, on one stripe.
type Level struct {
	plainHits counter // filter maybe, key present, one block from the cache, answered
	OutOfBounds,
	UnderTombstone,
	Negatives,
	Remembered,
	truePositives,
	falsePositives,
	unfiltered,
	outOfIndex,
	blocksFromCache,
	blocksFromDisk,
	leavesFromDisk,
	bytesFromDisk,
	bytesDecoded,
	hits counter

	Scans Scans
}

// Count adds what a probe did.
func (c *Level) Count(p *sstable.Probe, hit bool) {
	if p.Filter == sstable.Negative {
		c.Negatives.Add(1)
		return
	}
	if hit && p.Filter == sstable.Maybe && p.BlocksFromCache == 1 && p.BlocksFromDisk+p.IndexLeavesFromDisk == 0 {
		c.plainHits.Add(1)
		return
	}
	c.countSlow(p, hit)
}

func (c *Level) countSlow(p *sstable.Probe, hit bool) {
	switch {
	case p.Filter == sstable.Remembered:
		c.Remembered.Add(1)
		if p.IndexLeavesFromDisk == 0 {
			return
		}
	case p.Filter == sstable.Unfiltered:
		c.unfiltered.Add(1)
	case p.KeyPresent:
		c.truePositives.Add(1)
	default:
		c.falsePositives.Add(1)
	}
	add := func(c *counter, n int64) {
		if n != 0 {
			c.Add(uint64(n))
		}
	}
	if p.RuledOutByIndex {
		c.outOfIndex.Add(1)
	}
	if hit {
		c.hits.Add(1)
	}
	add(&c.blocksFromCache, int64(p.BlocksFromCache))
	add(&c.blocksFromDisk, int64(p.BlocksFromDisk))
	add(&c.leavesFromDisk, int64(p.IndexLeavesFromDisk))
	add(&c.bytesFromDisk, p.BytesFromDisk)
	add(&c.bytesDecoded, p.BytesDecoded)
}

// sum returns the counters with what is derived from them.
func (c *Level) sum() metrics.Lookups {
	plain := c.plainHits.Load()
	s := metrics.Lookups{
		RuledOutByBounds:         c.OutOfBounds.Load(),
		RuledOutByRangeTombstone: c.UnderTombstone.Load(),
		FilterNegatives:          c.Negatives.Load(),
		FilterTruePositives:      c.truePositives.Load() + plain,
		FilterFalsePositives:     c.falsePositives.Load(),
		FilterRemembered:         c.Remembered.Load(),
		Unfiltered:               c.unfiltered.Load(),
		RuledOutByIndex:          c.outOfIndex.Load(),
		BlocksFromCache:          c.blocksFromCache.Load() + plain,
		BlocksFromDisk:           c.blocksFromDisk.Load(),
		IndexLeavesFromDisk:      c.leavesFromDisk.Load(),
		BytesFromDisk:            c.bytesFromDisk.Load(),
		BytesDecoded:             c.bytesDecoded.Load(),
		Hits:                     c.hits.Load() + plain,
	}
	s.IndexLookups = s.Unfiltered + s.FilterTruePositives + s.FilterFalsePositives
	s.FilesConsidered = s.RuledOutByBounds + s.RuledOutByRangeTombstone + s.FilterNegatives + s.FilterRemembered +
		s.IndexLookups
	return s
}
