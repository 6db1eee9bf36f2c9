package kv

import (
	"time"

	"github.com/siftkv/siftkv/internal/version"
)

// Metrics are the figures of a store. Counters start at Open. Sub tells what was counted
// between two Metrics.
type Metrics struct {
	Closed bool // what is of the moment is not known

	Levels [NumLevels]LevelMetrics
	Runs   []RunMetrics // sorted runs, in the order in which a lookup searches them

	// Point lookups: Get, AppendGet, GetReader, Has, GetSize, Expiry, and the keys of MultiGet.
	Gets         uint64
	MemtableHits uint64 // answered by a memtable, tombstones included

	// Files whose prefix filter was checked by an iterator within one prefix, and those
	// of them that the iterator skipped.
	PrefixChecks, PrefixNegatives uint64

	// Memory, now, in bytes.
	FilterMemory int64 // filters of open tables, range filters included
	IndexMemory  int64 // indexes of open tables
	// FalsePositiveMemory is the size of the memory of false positives (see Options), and FalsePositives their number.
	// They count all stores that share a MemoryBudget.
	FalsePositiveMemory int64
	FalsePositives      int
	CacheBytes          int64 // the store's blocks in the cache, with their overhead
	CacheBlocks         int
	MemtableBytes       int64 // of all memtables: in use, and their indexes
	MemtableSize        int64 // of the active memtable when it is full; under a MemoryBudget it changes
	Memtables           int
	BudgetBytes         int64 // what the store alone has of its MemoryBudget; MemoryBudget.Usage has that of all
	OpenTables          int
	FiltersSkipped      int64 // open tables with filters that are on disk because memory is short

	// What a lack of memory has cost, since Open. FilterLoads are filters that were read
	// again, since they save more reads than those that gave way to them. ClosedTables
	// were closed, with their indexes, to make room for others.
	FilterLoads, ClosedTables uint64

	// Files with a filter, or a range filter, that is damaged or of an unknown family, since Open. Lookups
	// and scans in them read blocks that it would have ruled out.
	UnusableFilters uint64

	// Writes.
	Writes       uint64 // keys set, merged or deleted, and ranges deleted
	WriteBytes   uint64 // bytes of batches
	CommitGroups uint64 // writes to the WAL, each of one or more batches
	WALSyncs     uint64
	WALBytes     uint64 // of logs that are closed

	// Transactions that wrote: those that were committed, and those that failed with
	// ErrConflict.
	TxCommits, TxConflicts uint64

	// Background work.
	Flushes, FlushBytes          uint64 // blob files included
	Compactions                  uint64 // that rewrote tables
	Moves                        uint64 // tables that went to another level and were not rewritten
	CompactionReadBytes          uint64
	CompactionWrittenBytes       uint64 // blob files included
	Stalls, Slowdowns            uint64 // writes that had to wait, and that were delayed
	StallTime, SlowdownTime      time.Duration
	CompactionRateTime           time.Duration // that compactions waited for CompactionRate
	RunningCompactions           int
	HeldFiles                    int // obsolete files that readers in other processes may need, now
	Ingests                      uint64
	IngestedFiles, IngestedBytes uint64

	OpenFiles int // sorted files and blob files that are open; see Options.MaxOpenFiles

	// Failures, see docs/durability.md.
	Failure           string // why the store takes no writes now; empty if it takes them
	Failures          uint64 // times that it stopped taking writes
	ResumeAttempts    uint64
	Resumes           uint64 // times that it took writes again, by itself
	FailedCompactions uint64 // they changed nothing; they are tried again, or avoid the damaged file
	QuarantinedTables int    // files that compactions leave alone, now: damaged, or unreadable for now

	// CompactionDebt estimates the bytes that compactions have yet to read, and write about as many, until each level
	// has the size and the runs that Options ask for. It is 0 when the store has settled. Files that need only be
	// moved, and what running compactions have done so far, count in full. A store that is ReadOnly has the debt that
	// its own Options would make.
	CompactionDebt int64

	// How long operations took, if Options.LatencyHistograms is set.
	Latency LatencyMetrics

	// What recovery dropped from the logs at Open, see DroppedInfo.
	RecoveryDrops        uint64 // places
	RecoveryDroppedBytes uint64 // of logs

	// What flushes and compactions did with operands and with expired values.
	OperandsMerged uint64 // operands that became part of another operand, or of a value
	MergeFailures  uint64 // runs of operands that were kept because the merger failed
	ExpiredDropped uint64 // values

	Blobs BlobMetrics // of blob values

	Objects ObjectMetrics // of a store in an object store

	// Open handles, now.
	Iterators    int
	Snapshots    int // those of transactions included
	Transactions int
}

// RunMetrics are the figures of one sorted run, of which a lookup considers at most one
// file. In level 0 each flush, and each file that was ingested, is a run.
type RunMetrics struct {
	Level       int
	Files       int
	Bytes       int64  // of the files
	Entries     uint64 // point entries, tombstones included
	FilterBytes int64  // of the files' filters, on disk
}

// LevelMetrics are the figures of one level.
type LevelMetrics struct {
	Files        int
	Runs         int    // sorted runs; in level 0, each flush is one, in however many files
	Bytes        int64  // of the files
	Entries      uint64 // point entries, tombstones included
	Deletes      uint64 // of the entries, point tombstones
	RangeDeletes uint64
	Merges       uint64 // of the entries, merge operands
	Expiring     uint64 // of the entries, values with an expiry
	FilterBytes  int64  // of the files' filters, on disk
	Unfiltered   int    // files that were written without a filter
	IndexBytes   int64  // of the files' indexes, on disk
	BlobBytes    uint64 // of the records in blob files that the files refer to
	Lookup       LookupCounters
	Scan         ScanCounters

	// RangeFilterBytes are those of the range filters of the level's open files, on disk: of others the
	// store does not know them.
	RangeFilterBytes int64
}

// Lookup returns the counters of all levels together.
func (m *Metrics) Lookup() LookupCounters {
	var sum LookupCounters
	for i := range m.Levels {
		sum = sum.Add(m.Levels[i].Lookup)
	}
	return sum
}

// counters lists what counts up from Open, the counters of levels aside.
func (m *Metrics) counters() []*uint64 {
	return append(m.Objects.counters(),
		&m.Gets, &m.MemtableHits, &m.PrefixChecks, &m.PrefixNegatives,
		&m.FilterLoads, &m.ClosedTables, &m.UnusableFilters,
		&m.Writes, &m.WriteBytes, &m.CommitGroups, &m.WALSyncs, &m.WALBytes, &m.TxCommits, &m.TxConflicts,
		&m.Flushes, &m.FlushBytes, &m.Compactions, &m.Moves, &m.CompactionReadBytes, &m.CompactionWrittenBytes,
		&m.Stalls, &m.Slowdowns, &m.Ingests, &m.IngestedFiles, &m.IngestedBytes,
		&m.Failures, &m.ResumeAttempts, &m.Resumes, &m.FailedCompactions, &m.RecoveryDrops, &m.RecoveryDroppedBytes,
		&m.OperandsMerged, &m.MergeFailures, &m.ExpiredDropped,
		&m.Blobs.Written, &m.Blobs.Committed, &m.Blobs.Relocated, &m.Blobs.Reads, &m.Blobs.Read, &m.Blobs.CacheHits,
		&m.Blobs.Collections,
	)
}

// Sub returns m with all counters, times and histograms reduced to what was counted since prev, an earlier Metrics of
// the same store. Figures of the moment (sizes, numbers of files, debt) stay.
func (m *Metrics) Sub(prev *Metrics) *Metrics {
	d, p := *m, *prev
	counters := d.counters()
	for i, c := range p.counters() {
		*counters[i] -= *c
	}
	d.StallTime -= prev.StallTime
	d.SlowdownTime -= prev.SlowdownTime
	d.CompactionRateTime -= prev.CompactionRateTime
	d.Latency = m.Latency.Sub(prev.Latency)
	d.Objects.Requests = m.Objects.Requests.Minus(prev.Objects.Requests)
	for i := range d.Levels {
		d.Levels[i].Lookup = d.Levels[i].Lookup.Sub(prev.Levels[i].Lookup)
		d.Levels[i].Scan = d.Levels[i].Scan.Sub(prev.Levels[i].Scan)
	}
	return &d
}

// Metrics returns the store's figures. For a closed store it returns only the counters.
func (d *DB) Metrics() *Metrics {
	m := &Metrics{}
	c := &d.counters
	for i := range c.stripes {
		s := &c.stripes[i]
		m.Gets += s.gets.Load()
		m.MemtableHits += s.memtableHits.Load()
		for n := range s.levels {
			m.Levels[n].Lookup = m.Levels[n].Lookup.Add(s.levels[n].sum())
			m.Levels[n].Scan = m.Levels[n].Scan.Add(s.levels[n].scans.sum())
		}
	}
	m.PrefixChecks, m.PrefixNegatives = c.prefix.Checks.Load(), c.prefix.Negatives.Load()
	m.UnusableFilters = d.tables.Unusable.Load()
	m.Objects.read(d)
	p := &d.commits.Counters
	m.Writes, m.WriteBytes, m.CommitGroups = p.Writes.Load(), p.Bytes.Load(), p.Groups.Load()
	m.WALSyncs, m.WALBytes = p.Syncs.Load(), c.walBytes.Load()
	m.Flushes, m.FlushBytes = c.flushes.Load(), c.flushBytes.Load()
	m.Compactions, m.Moves = c.compactions.Load(), c.moves.Load()
	m.CompactionReadBytes, m.CompactionWrittenBytes = c.compactionRead.Load(), c.compactionWritten.Load()
	m.Stalls, m.StallTime = c.stalls.Load(), time.Duration(c.stallNanos.Load())
	m.CompactionRateTime = time.Duration(d.compactionRate.waited.Load())
	m.Slowdowns, m.SlowdownTime = c.slowdowns.Load(), time.Duration(c.slowdownNanos.Load())
	m.Failures, m.ResumeAttempts, m.Resumes = c.failures.Load(), c.resumeAttempts.Load(), c.resumes.Load()
	m.FailedCompactions = c.failedCompactions.Load()
	m.RecoveryDrops, m.RecoveryDroppedBytes = c.recoveryDrops.Load(), c.recoveryDroppedBytes.Load()
	m.Ingests, m.IngestedFiles, m.IngestedBytes = c.ingests.Load(), c.ingestedFiles.Load(), c.ingestedBytes.Load()
	m.OperandsMerged, m.MergeFailures = c.operandsMerged.Load(), c.mergeFailures.Load()
	m.ExpiredDropped = c.expiredDropped.Load()
	m.Blobs.count(c, d.values)
	m.FilterMemory, m.IndexMemory = d.tables.Filters.Load(), d.tables.Indexes.Load()
	m.FalsePositiveMemory, m.FalsePositives = d.tables.FalsePositives.Bytes(), d.tables.FalsePositives.Len()
	m.FiltersSkipped = d.tables.Skipped.Load()
	m.FilterLoads, m.ClosedTables = d.tables.Loads.Load(), d.tables.Left.Load()
	m.CacheBytes, m.CacheBlocks = d.cached()
	if d.share != nil {
		m.BudgetBytes = d.share.Bytes() + m.FilterMemory + m.IndexMemory + d.tables.Parts.Used()
	}
	m.OpenFiles = d.openFiles.Used()
	m.HeldFiles = d.cleaner.Held()
	m.TxCommits, m.TxConflicts = c.txCommits.Load(), c.txConflicts.Load()
	m.Latency = d.latencies.metrics()
	m.Iterators, m.Transactions = d.iterators.Count(), d.transactions.Count()
	d.shape(m)
	return m
}

// shape fills in what the store has now.
func (d *DB) shape(m *Metrics) {
	v := d.shapeLocked(m)
	if v == nil {
		return
	}
	for n := range m.Levels {
		l, s := &m.Levels[n], &v.Levels[n].Sums
		l.Runs, l.Files, l.Bytes = v.NumRuns(n), s.Tables, s.Bytes
		l.Entries, l.Deletes, l.RangeDeletes = s.Entries, s.Deletes, s.RangeDeletes
		l.Merges, l.Expiring = s.Merges, s.Expiring
		l.FilterBytes, l.IndexBytes, l.Unfiltered = s.FilterBytes, s.IndexBytes, s.Unfiltered
		l.BlobBytes = s.BlobBytes
	}
	m.Blobs.shape(v)
	m.Runs = runMetricsOf(v)
	m.CompactionDebt = d.compactionDebt(v)
	v.All(func(level int, t *version.Table) {
		if r := t.Reader.Load(); r != nil {
			m.OpenTables++
			m.Levels[level].RangeFilterBytes += int64(r.Properties().RangeFilterBytes)
		}
	})
}

// shapeLocked fills in what d.mu guards, and returns the current version, which never
// changes; nil if the store is closed.
func (d *DB) shapeLocked(m *Metrics) *version.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Closed = d.current == nil; m.Closed {
		return nil
	}
	if d.failure != nil {
		m.Failure = d.failure.Error()
	}
	m.RunningCompactions, m.Snapshots = d.compactions.running, len(d.snapshots.list)
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

// runMetricsOf returns the figures of each run, those of level 0 first.
func runMetricsOf(v *version.Version) []RunMetrics {
	runs := make([]RunMetrics, 0, len(v.Runs))
	for _, r := range v.Runs {
		s := r.Sums()
		runs = append(runs, RunMetrics{Level: r.Level, Files: s.Tables, Bytes: s.Bytes, Entries: s.Entries,
			FilterBytes: s.FilterBytes})
	}
	return runs
}
