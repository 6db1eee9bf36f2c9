package version

import (
	"slices"

	"github.com/siftkv/siftkv/internal/sstable"
)

// giveUpIdle gives up readers of tables that nobody asks while indexes, with so many bytes to
// come, take more than their quarter of the limit; but not that of t. A table that is asked keeps
// its index, even if all of them are too many: to read an index for a lookup costs more than the
// blocks that the cache loses to it. (New files then have indexes of which little stays in
// memory.) Readers of tables with range tombstones stay, since each lookup asks those. Who uses
// a reader that is given up goes on with it.
func (c *TableCache) giveUpIdle(t *Table, index int64) {
	if c.Limit == 0 || c.KeepOpen {
		return
	}
	for range candidates {
		if c.Indexes.Load()+index <= c.Limit/indexPart {
			return
		}
		c.ring.mu.Lock()
		v, asked := c.ring.least(func(v *Table) bool { return v != t && v.RangeDeletes == 0 },
			func(v *Table) float64 { return float64(v.traffic.asked.Load()) })
		c.ring.mu.Unlock()
		if v == nil || asked > 0 || !v.opening.TryLock() {
			return
		}
		if old := v.Reader.Swap(nil); old != nil {
			c.leave(v, old)
			v.left = append(slices.DeleteFunc(v.left, sstable.Left.Gone), old.Leave())
			c.Left.Add(1)
		}
		v.opening.Unlock()
	}
}

const (
	indexPart = 4                // indexes may take one part in so many of the limit
	opened    = 2 * sampleWeight // the traffic of a table that was just opened
)
