package metrics

import (
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
)

// Store has the figures of a store. Counters start at Open. Sub tells what was counted between two of them.
type Store struct {
	Closed bool // what is of the moment is not known

	Levels [manifest.NumLevels]Level
	Runs   []Run // sorted runs, in the order in which a lookup searches them

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

	// What a lack of memory has cost, since Open. FilterLoads are filters that were read again, since they save more
	// reads than those that gave way to them. ClosedTables were closed, with their indexes, to make room for others.
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

	// Transactions that wrote: those that were committed, and those that failed with ErrConflict.
	TxCommits, TxConflicts uint64

	// Background work.
	Flushes, FlushBytes          uint64 // blob files included
	Compactions                  uint64 // that rewrote tables
	Moves                        uint64 // tables that went to another level and were not rewritten
	CompactionReadBytes          uint64
	CompactionWrittenBytes       uint64 // blob files included
	IdleCompactions              uint64 // of the compactions, those of an idle store; see Options.IdleCompaction
	IdleCompactionBytes          uint64 // that these wrote, of CompactionWrittenBytes
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
	Latency Latency

	// What recovery dropped from the logs at Open, see DroppedInfo.
	RecoveryDrops        uint64 // places
	RecoveryDroppedBytes uint64 // of logs

	// What flushes and compactions did with operands and with expired values.
	OperandsMerged uint64 // operands that became part of another operand, or of a value
	MergeFailures  uint64 // runs of operands that were kept because the merger failed
	ExpiredDropped uint64 // values

	Blobs Blobs // of blob values

	Objects Objects // of a store in an object store

	// Open handles, now.
	Iterators    int
	Snapshots    int // those of transactions included
	Transactions int
}

// Run has the figures of one sorted run, of which a lookup considers at most one
// file. In level 0 each flush, and each file that was ingested, is a run.
type Run struct {
	Level       int
	Files       int
	Bytes       int64  // of the files
	Entries     uint64 // point entries, tombstones included
	FilterBytes int64  // of the files' filters, on disk
}

// Level has the figures of one level.
type Level struct {
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
	Lookup       Lookups
	Scan         Scans

	// RangeFilterBytes are those of the range filters of the level's open files, on disk: of others the
	// store does not know them.
	RangeFilterBytes int64
}

// Lookup returns the counters of all levels together.
func (m *Store) Lookup() Lookups {
	var sum Lookups
	for i := range m.Levels {
		sum = sum.Add(m.Levels[i].Lookup)
	}
	return sum
}

// counters lists what counts up from Open, the counters of levels aside.
func (m *Store) counters() []*uint64 {
	return append(m.Objects.counters(),
		&m.Gets, &m.MemtableHits, &m.PrefixChecks, &m.PrefixNegatives,
		&m.FilterLoads, &m.ClosedTables, &m.UnusableFilters,
		&m.Writes, &m.WriteBytes, &m.CommitGroups, &m.WALSyncs, &m.WALBytes, &m.TxCommits, &m.TxConflicts,
		&m.Flushes, &m.FlushBytes, &m.Compactions, &m.Moves, &m.CompactionReadBytes, &m.CompactionWrittenBytes,
		&m.IdleCompactions, &m.IdleCompactionBytes,
		&m.Stalls, &m.Slowdowns, &m.Ingests, &m.IngestedFiles, &m.IngestedBytes,
		&m.Failures, &m.ResumeAttempts, &m.Resumes, &m.FailedCompactions, &m.RecoveryDrops, &m.RecoveryDroppedBytes,
		&m.OperandsMerged, &m.MergeFailures, &m.ExpiredDropped,
		&m.Blobs.Written, &m.Blobs.Committed, &m.Blobs.Relocated, &m.Blobs.Reads, &m.Blobs.Read, &m.Blobs.CacheHits,
		&m.Blobs.GCs,
	)
}

// Sub returns m with all counters, times and histograms reduced to what was counted since prev, an earlier state of the
// same store. Figures of the moment (sizes, numbers of files, debt) stay.
func (m *Store) Sub(prev *Store) *Store {
	d, p := *m, *prev
	addTimes(-1, d.counters(), p.counters())
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

// addTimes adds n times each of some counters to those of others.
func addTimes(n int64, to, counters []*uint64) {
	for i, c := range counters {
		*to[i] += uint64(n) * *c
	}
}
