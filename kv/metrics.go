package kv

import (
	"time"

	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv/metrics"
)

// Metrics returns the store's figures. For a closed store it returns only the counters.
func (d *DB) Metrics() *metrics.Store {
	m := &metrics.Store{}
	d.counters.AddTo(m)
	m.Blobs.Committed = d.values.Written.Load()
	m.Blobs.Written += m.Blobs.Committed
	p := &d.commits.Counters
	m.Writes, m.WriteBytes, m.CommitGroups = p.Writes.Load(), p.Bytes.Load(), p.Groups.Load()
	m.WALSyncs = p.Syncs.Load()
	m.CompactionRateTime = time.Duration(d.compactionRate.Waited.Load())
	addTableCache(m, &d.tables)
	if d.objects != nil {
		m.Objects = d.objects.dir.Metrics()
	}
	if owner := d.memory.share.Owner(); owner != nil {
		m.CacheBytes, m.CacheBlocks = owner.Used()
	} else {
		m.CacheBytes, m.CacheBlocks = d.memory.cache.Used()
	}
	if d.memory.share != nil {
		m.BudgetBytes = d.memory.share.Bytes() + m.FilterMemory + m.IndexMemory + d.tables.Parts.Used()
	}
	m.OpenFiles = d.openFiles.Used()
	m.HeldFiles = d.cleaner.Held()
	m.Iterators, m.Transactions = d.handles.iterators.Count(), d.handles.transactions.Count()
	d.clock.ask()
	if v := d.addPresent(m); v != nil {
		addVersion(m, v)
	}
	return m
}

// addTableCache sets the figures of open tables.
func addTableCache(m *metrics.Store, c *tablecache.Cache) {
	m.UnusableFilters = c.Unusable.Load()
	m.FilterMemory, m.IndexMemory = c.Filters.Load(), c.Indexes.Load()
	m.FalsePositiveMemory, m.FalsePositives = c.FalsePositives.Bytes(), c.FalsePositives.Len()
	m.FiltersSkipped = c.Skipped.Load()
	m.FilterLoads, m.ClosedTables = c.Loads.Load(), c.Left.Load()
}

// addVersion sets the figures of tables and blob files.
func addVersion(m *metrics.Store, v *version.Version) {
	for n := range m.Levels {
		l, s := &m.Levels[n], &v.Levels[n].Totals
		l.Runs, l.Files, l.Bytes = v.NumRuns(n), s.Tables, s.Bytes
		l.Entries, l.Deletes, l.RangeDeletes = s.Entries, s.Deletes, s.RangeDeletes
		l.Merges, l.Expiring = s.Merges, s.Expiring
		l.FilterBytes, l.IndexBytes, l.Unfiltered = s.FilterBytes, s.IndexBytes, s.Unfiltered
		l.BlobBytes = s.BlobBytes
	}
	m.Runs = make([]metrics.Run, 0, len(v.Runs))
	for _, r := range v.Runs {
		s := r.Totals()
		m.Runs = append(m.Runs, metrics.Run{Level: r.Level, Files: s.Tables, Bytes: s.Bytes, Entries: s.Entries,
			FilterBytes: s.FilterBytes})
	}
	v.All(func(level int, t *version.Table) {
		if r := t.Reader.Load(); r != nil {
			m.OpenTables++
			m.Levels[level].RangeFilterBytes += int64(r.Properties().RangeFilterBytes)
		}
	})
	b, s := &m.Blobs, v.BlobTotals()
	b.Files, b.Bytes, b.Records = s.Files, s.Bytes, s.Records
	b.LiveRecords, b.LiveBytes, b.Garbage = s.LiveRecords, s.LiveBytes, s.RecordBytes-s.LiveBytes
	for n := range v.Levels[:lastLevel] {
		b.HiddenBytes += v.Levels[n].BlobBytes
	}
}

// addPresent sets the figures that d.mu guards, and returns the current version, which never changes; nil: d is closed.
func (d *DB) addPresent(m *metrics.Store) *version.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Closed = d.current == nil; m.Closed {
		return nil
	}
	if d.failure != nil {
		m.Failure = d.failure.Error()
	}
	m.CompactionDebt = d.compactionInput(d.current).Debt()
	m.RunningCompactions, m.Snapshots = d.compactions.Running, len(d.snapshots.list)
	m.MemtableSize = d.mem.Bytes()
	for _, mem := range append([]*memTable{d.mem}, d.imms...) {
		m.Memtables++
		m.MemtableBytes += mem.Size() + mem.IndexSize()
	}
	for _, t := range d.compactions.Quarantined {
		if d.current.Has(t.Num) && t.Quarantined {
			m.QuarantinedTables++
		}
	}
	return d.current
}
