package kv

import "github.com/siftkv/siftkv/internal/version"

import "time"

// Metrics are figures of a store. Counters count from Open on; take two and use
// Sub for what happened in between.
type Metrics struct {
	Levels [NumLevels]LevelMetrics
	Runs   []RunMetrics // sorted runs in the order in which a lookup asks them

	// Point lookups: Get, AppendGet, Has.
	Gets         uint64
	MemtableHits uint64 // answered by a memtable, tombstones included

	// Files whose filters iterators within one prefix asked for it, and those that
	// they passed over.
	PrefixChecks, PrefixNegatives uint64

	// Memory, now, in bytes.
	FilterMemory   int64 // filters of open tables
	IndexMemory    int64 // indexes of open tables
	CacheBytes     int64 // blocks in the cache, with their overhead
	CacheBlocks    int
	MemtableBytes  int64 // of all memtables: in use, and their indexes
	Memtables      int
	OpenTables     int
	FiltersSkipped int64 // filters left on disk for want of memory, since Open

	// Files whose filter is damaged or of an unknown family, since Open: their
	// lookups read blocks that a filter would have spared.
	UnusableFilters uint64

	// Writes.
	Writes       uint64 // keys set, merged or deleted, and ranges deleted
	WriteBytes   uint64 // bytes of batches
	CommitGroups uint64 // WAL writes that carried them
	WALSyncs     uint64
	WALBytes     uint64 // of logs that ended

	// Transactions that wrote: those that were committed and those refused with
	// ErrConflict.
	TxCommits, TxConflicts uint64

	// Background work.
	Flushes, FlushBytes          uint64
	Compactions                  uint64 // that rewrote tables
	Moves                        uint64 // tables that changed their level as they were
	CompactionReadBytes          uint64
	CompactionWrittenBytes       uint64
	Stalls, Slowdowns            uint64 // writes that waited, and that were slowed down
	StallTime, SlowdownTime      time.Duration
	CompactionRateTime           time.Duration // that compactions waited for CompactionRate
	RunningCompactions           int
	HeldFiles                    int // obsolete files that readers in other processes may need, now
	Ingests                      uint64
	IngestedFiles, IngestedBytes uint64

	OpenFiles int // sorted files that are open, of Options.MaxOpenFiles

	// Failures, see docs/durability.md.
	Failure           string // why the store takes no writes now; empty: it does
	Failures          uint64 // how often it stopped taking writes
	ResumeAttempts    uint64
	Resumes           uint64 // how often it took writes again, by itself
	FailedCompactions uint64 // that changed nothing; they are tried again, or go around the damage
	QuarantinedTables int    // files that compactions leave alone, now: damaged, or not given out by the disk

	// What the recovery at Open dropped from the logs, see DroppedInfo.
	RecoveryDrops        uint64 // places
	RecoveryDroppedBytes uint64 // of logs

	// What flushes and compactions did with operands, and with expired values.
	OperandsMerged uint64 // became part of another operand, or of a value
	MergeFailures  uint64 // runs of operands kept because the merger failed
	ExpiredDropped uint64 // values

	// Open handles, now.
	Iterators    int
	Snapshots    int // those of transactions included
	Transactions int
}

// RunMetrics are figures of one sorted run: a lookup considers one file of it at most.
// Each file of level 0 is a run.
type RunMetrics struct {
	Level       int
	Files       int
	Bytes       int64  // of the files
	Entries     uint64 // point entries, tombstones included
	FilterBytes int64  // of the files' filters, on disk
}

// add counts a file.
func (r *RunMetrics) add(t *version.Table) {
	r.Files++
	r.Bytes += t.Size
	r.Entries += t.Entries
	r.FilterBytes += int64(t.FilterBytes)
}

// LevelMetrics are figures of one level.
type LevelMetrics struct {
	Files        int
	Runs         int    // sorted runs: a lookup considers one file of each at most; in level 0 each file is one
	Bytes        int64  // of the files
	Entries      uint64 // point entries, tombstones included
	Deletes      uint64 // of them, point tombstones
	RangeDeletes uint64
	Merges       uint64 // of the entries, merge operands
	Expiring     uint64 // of the entries, values with an expiry
	FilterBytes  int64  // of the files' filters, on disk
	Unfiltered   int    // files that were written without a filter
	IndexBytes   int64  // of the files' indexes, on disk
	Lookup       LookupCounters
}

// LookupCounters say what point lookups did in one level. Every file considered
// is ruled out by its bounds, ruled out by a range tombstone, or probed; a probe
// asks the filter if there is one; what the filter does not rule out is looked up
// in the index; and what the index does not rule out is read.
type LookupCounters struct {
	FilesConsidered          uint64 // at most one per lookup and sorted run; in level 0 every file is one
	RuledOutByBounds         uint64
	RuledOutByRangeTombstone uint64

	FilterNegatives      uint64
	FilterTruePositives  uint64 // "maybe", and some version of the key was in the file
	FilterFalsePositives uint64 // "maybe", and none was
	Unfiltered           uint64 // probes of files without a usable filter

	IndexLookups    uint64 // Unfiltered + FilterTruePositives + FilterFalsePositives
	RuledOutByIndex uint64 // the key was behind the last block

	BlocksFromCache uint64 // data blocks
	BlocksFromDisk  uint64
	LeavesFromDisk  uint64 // leaves of partitioned indexes
	BytesFromDisk   uint64 // of these blocks and leaves, as stored
	BytesDecoded    uint64 // of the same, decompressed

	Hits uint64 // lookups answered here, by a value or a tombstone; operands alone do not
}

// FilterChecks returns how many times a filter was asked.
func (c LookupCounters) FilterChecks() uint64 {
	return c.FilterNegatives + c.FilterTruePositives + c.FilterFalsePositives
}

// FalsePositiveRate returns the share of absent keys that filters let pass:
// false positives / (false positives + negatives), 0 if none was asked.
func (c LookupCounters) FalsePositiveRate() float64 {
	if n := c.FilterFalsePositives + c.FilterNegatives; n > 0 {
		return float64(c.FilterFalsePositives) / float64(n)
	}
	return 0
}

// fields lists the counters, for Add and Sub.
func (c *LookupCounters) fields() []*uint64 {
	return []*uint64{
		&c.FilesConsidered, &c.RuledOutByBounds, &c.RuledOutByRangeTombstone,
		&c.FilterNegatives, &c.FilterTruePositives, &c.FilterFalsePositives, &c.Unfiltered,
		&c.IndexLookups, &c.RuledOutByIndex,
		&c.BlocksFromCache, &c.BlocksFromDisk, &c.LeavesFromDisk, &c.BytesFromDisk, &c.BytesDecoded,
		&c.Hits,
	}
}

// Add returns the sums of two sets of counters.
func (c LookupCounters) Add(o LookupCounters) LookupCounters {
	fields := c.fields()
	for i, f := range o.fields() {
		*fields[i] += *f
	}
	return c
}

// Sub returns what was counted between o and c.
func (c LookupCounters) Sub(o LookupCounters) LookupCounters {
	fields := c.fields()
	for i, f := range o.fields() {
		*fields[i] -= *f
	}
	return c
}

// Lookup returns the counters of all levels together.
func (m *Metrics) Lookup() LookupCounters {
	var sum LookupCounters
	for i := range m.Levels {
		sum = sum.Add(m.Levels[i].Lookup)
	}
	return sum
}

// Sub returns m with the counters of lookups as they grew since prev.
func (m *Metrics) Sub(prev *Metrics) *Metrics {
	d := *m
	d.Gets -= prev.Gets
	d.MemtableHits -= prev.MemtableHits
	for i := range d.Levels {
		d.Levels[i].Lookup = d.Levels[i].Lookup.Sub(prev.Levels[i].Lookup)
	}
	return &d
}

// Metrics returns the store's figures. Of a closed store it returns the counters
// alone.
func (d *DB) Metrics() *Metrics {
	m := &Metrics{}
	c := &d.counters
	for i := range c.stripes {
		s := &c.stripes[i]
		m.Gets += s.gets.Load()
		m.MemtableHits += s.memtableHits.Load()
		for n := range s.levels {
			m.Levels[n].Lookup = m.Levels[n].Lookup.Add(s.levels[n].sum())
		}
	}
	m.PrefixChecks, m.PrefixNegatives = c.prefix.Checks.Load(), c.prefix.Negatives.Load()
	m.UnusableFilters = d.tables.Unusable.Load()
	p := &d.commits.Counters
	m.Writes, m.WriteBytes, m.CommitGroups = p.Writes.Load(), p.Bytes.Load(), p.Groups.Load()
	m.WALSyncs, m.WALBytes = p.Syncs.Load(), c.walBytes.Load()
	m.Flushes, m.FlushBytes = c.flushes.Load(), c.flushBytes.Load()
	m.Compactions, m.Moves = c.compactions.Load(), c.moves.Load()
	m.CompactionReadBytes, m.CompactionWrittenBytes = c.compactRead.Load(), c.compactWritten.Load()
	m.Stalls, m.StallTime = c.stalls.Load(), time.Duration(c.stallNanos.Load())
	m.CompactionRateTime = time.Duration(d.compactionRate.waited.Load())
	m.Slowdowns, m.SlowdownTime = c.slowdowns.Load(), time.Duration(c.slowNanos.Load())
	m.Failures, m.ResumeAttempts, m.Resumes = c.failures.Load(), c.resumeAttempts.Load(), c.resumes.Load()
	m.FailedCompactions = c.failedCompactions.Load()
	m.RecoveryDrops, m.RecoveryDroppedBytes = c.recoveryLosses.Load(), c.recoveryLost.Load()
	m.Ingests, m.IngestedFiles, m.IngestedBytes = c.ingests.Load(), c.ingestedFiles.Load(), c.ingestedBytes.Load()
	m.OperandsMerged, m.MergeFailures, m.ExpiredDropped = c.operandsMerged.Load(), c.mergeFailures.Load(), c.expired.Load()
	m.FilterMemory, m.IndexMemory = d.tables.Filters.Load(), d.tables.Indexes.Load()
	m.FiltersSkipped = d.tables.Skipped.Load()
	m.CacheBytes, m.CacheBlocks = d.cache.Used()
	m.OpenFiles = d.openFiles.Used()
	m.HeldFiles = int(d.cleaner.held.count.Load())
	m.TxCommits, m.TxConflicts = c.txCommits.Load(), c.txConflicts.Load()
	m.Iterators, m.Transactions = int(d.iterators.count.Load()), int(d.transactions.count.Load())
	d.shape(m)
	return m
}

// shape fills in what the store has now.
func (d *DB) shape(m *Metrics) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil {
		return
	}
	if d.failure != nil {
		m.Failure = d.failure.Error()
	}
	m.RunningCompactions, m.Snapshots = d.compactions.running, len(d.snapshots.list)
	for _, mem := range append([]*memTable{d.mem}, d.imms...) {
		m.Memtables++
		m.MemtableBytes += mem.Size() + mem.IndexSize()
	}
	for n := range m.Levels {
		m.Levels[n].Runs = d.current.NumRuns(n)
	}
	m.Runs = runMetricsOf(d.current)
	d.current.All(func(n int, t *version.Table) {
		l := &m.Levels[n]
		l.Files++
		l.Bytes += t.Size
		l.Entries += t.Entries
		l.Deletes += t.Deletes
		l.RangeDeletes += t.RangeDeletes
		l.Merges += t.Merges
		l.Expiring += t.Expiring
		l.FilterBytes += int64(t.FilterBytes)
		if t.FilterBytes == 0 && t.Entries > 0 {
			l.Unfiltered++
		}
		l.IndexBytes += int64(t.IndexBytes)
		if t.Reader.Load() != nil {
			m.OpenTables++
		}
		if t.Quarantined {
			m.QuarantinedTables++
		}
	})
}

// sum returns the counters with what is derived from them.
func (c *levelCounters) sum() LookupCounters {
	plain := c.plainHits.Load()
	s := LookupCounters{
		RuledOutByBounds:         c.outOfBounds.Load(),
		RuledOutByRangeTombstone: c.underTombstone.Load(),
		FilterNegatives:          c.negatives.Load(),
		FilterTruePositives:      c.truePositives.Load() + plain,
		FilterFalsePositives:     c.falsePositives.Load(),
		Unfiltered:               c.unfiltered.Load(),
		RuledOutByIndex:          c.outOfIndex.Load(),
		BlocksFromCache:          c.blocksFromCache.Load() + plain,
		BlocksFromDisk:           c.blocksFromDisk.Load(),
		LeavesFromDisk:           c.leavesFromDisk.Load(),
		BytesFromDisk:            c.bytesFromDisk.Load(),
		BytesDecoded:             c.bytesDecoded.Load(),
		Hits:                     c.hits.Load() + plain,
	}
	s.IndexLookups = s.Unfiltered + s.FilterTruePositives + s.FilterFalsePositives
	s.FilesConsidered = s.RuledOutByBounds + s.RuledOutByRangeTombstone + s.FilterNegatives + s.IndexLookups
	return s
}

// runMetricsOf returns the figures of each run, those of level 0 first.
func runMetricsOf(v *version.Version) []RunMetrics {
	runs := make([]RunMetrics, 0, len(v.Levels[0].Tables)+len(v.Runs))
	for _, t := range v.Levels[0].Tables {
		var r RunMetrics
		r.add(t)
		runs = append(runs, r)
	}
	for _, run := range v.Runs {
		r := RunMetrics{Level: run.Level}
		for _, t := range run.Tables {
			r.add(t)
		}
		runs = append(runs, r)
	}
	return runs
}
