package tablecache

import (
	"slices"

	"github.com/siftkv/siftkv/internal/sstable"
)

// closeIdle closes readers of idle tables while indexes, including index new bytes, exceed a
// quarter of the limit. It keeps that of t. A table in use keeps its index, even if all of them are
// too many: reading an index for a lookup costs more than the blocks that the cache loses to it.
// (Little of the indexes of new files then stays in memory.) Readers of tables with range
// tombstones stay, since each lookup needs those. Readers in use are closed after their last use.
func (c *Cache) closeIdle(t *Entry, index int64) {
	m := c.Memory
	if m == nil {
		return
	}
	for range candidates {
		if m.indexes.Load()+index <= m.limit.Load()/indexPart {
			return
		}
		m.clock.mu.Lock()
		v, asked := m.clock.minWorth(func(v *Entry) bool { return v != t && v.RangeDeletes == 0 && !v.cache.KeepOpen },
			func(v *Entry) float64 { return float64(v.traffic.asked.Load()) })
		m.clock.mu.Unlock()
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
	indexPart = 4                // indexes may take one part in indexPart of the limit
	opened    = 2 * sampleWeight // the traffic of a table that was just opened
)
