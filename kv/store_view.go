package kv

import (
	"github.com/siftkv/siftkv/internal/storeview"
)

func init() {
	storeview.Of = func(db any) (*storeview.View, error) { return storeViewOf(db.(*DB)) }
}

// storeViewOf returns a view of the present state of d, for packages that examine a store.
func storeViewOf(d *DB) (*storeview.View, error) {
	s, _, now := d.present.enter(0)
	if s == nil {
		return nil, d.unreadable()
	}
	o := &d.opts
	return &storeview.View{
		Version: s.version, Tables: &d.tables, Seq: now, Sampler: d.watch.Sampler(),
		Filters: o.filterPlan(), Compaction: o.compaction(),
		Blocks: storeview.Blocks{Size: o.BlockSize, Cache: max(o.CacheSize, 0),
			Remembered: max(o.FalsePositiveMemory, 0), SharedMemory: o.MemoryLimit > 0 || o.MemoryBudget != nil},
		Memtables: func(key []byte, hash uint64) (m storeview.InMemory, err error) {
			l := lookup{d: d, key: key, hash: hash, at: now}
			if m.Answered, err = l.inMemory(s); l.chain.begun {
				l.found, err = l.combine(s, err)
			}
			m.Found, m.Cover = l.found, l.cover
			return m, err
		},
		Release: func() { s.release(0) },
	}, nil
}
