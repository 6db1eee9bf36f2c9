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
	m := c.Memory
	if m == nil {
		return
	}
	for range candidates {
		if m.indexes.Load()+index <= m.limit.Load()/indexPart {
			return
		}
		m.ring.mu.Lock()
		v, asked := m.ring.least(func(v *Table) bool { return v != t && v.RangeDeletes == 0 && !v.cache.KeepOpen },
			func(v *Table) float64 { return float64(v.traffic.asked.Load()) })
		m.ring.mu.Unlock()
		if v == nil || asked > 0 || !v.opening.TryLock() {
			return
		}
		if old := v.Reader.Swap(nil); old != nil {
			v.cache.leave(v, old)
			v.left = append(slices.DeleteFunc(v.left, sstable.Left.Gone), old.Leave())
			v.cache.Left.Add(1)
		}
		v.opening.Unlock()
	}
}

const (
	indexPart = 4                // indexes may take one part in so many of the limit
	opened    = 2 * sampleWeight // the traffic of a table that was just opened
)
