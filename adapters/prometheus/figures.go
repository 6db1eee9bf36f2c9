package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv"
)

// A figure is one of a whole store. A counter is also known of a store that is closed.
type figure struct {
	name, help string
	kind       client.ValueType
	value      func(m *kv.Metrics) float64
}

const (
	counter = client.CounterValue
	gauge   = client.GaugeValue
)

var figures = []figure{
	{"gets_total", "Point lookups: Get, AppendGet, Has, and the keys of MultiGet.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Gets) }},
	{"memtable_hits_total", "Point lookups that a memtable answered.", counter,
		func(m *kv.Metrics) float64 { return float64(m.MemtableHits) }},
	{"prefix_filter_checks_total", "Files whose prefix filter an iterator checked.", counter,
		func(m *kv.Metrics) float64 { return float64(m.PrefixChecks) }},
	{"prefix_filter_negatives_total", "Files that an iterator skipped by their prefix filter.", counter,
		func(m *kv.Metrics) float64 { return float64(m.PrefixNegatives) }},
	{"unusable_filters_total", "Files found whose filter is damaged or of an unknown family.", counter,
		func(m *kv.Metrics) float64 { return float64(m.UnusableFilters) }},
	{"filter_loads_total", "Filters that were read again after they gave way for lack of memory.", counter,
		func(m *kv.Metrics) float64 { return float64(m.FilterLoads) }},
	{"closed_tables_total", "Sorted files that were closed for lack of memory.", counter,
		func(m *kv.Metrics) float64 { return float64(m.ClosedTables) }},

	{"filter_memory_bytes", "Memory of filters of open files.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.FilterMemory) }},
	{"index_memory_bytes", "Memory of indexes of open files.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.IndexMemory) }},
	{"false_positive_memory_bytes", "Memory of false positives of filters that are not paid for again.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.FalsePositiveMemory) }},
	{"cache_bytes", "Memory of the blocks in the cache.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.CacheBytes) }},
	{"cache_blocks", "Blocks in the cache.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.CacheBlocks) }},
	{"memtable_bytes", "Memory of memtables.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.MemtableBytes) }},
	{"memtables", "Memtables, the active one included.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Memtables) }},
	{"filters_on_disk", "Filters of open files that are not in memory for lack of it.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.FiltersSkipped) }},
	{"open_tables", "Sorted files whose index is in memory.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.OpenTables) }},
	{"open_files", "Sorted files that are open.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.OpenFiles) }},
	{"held_files", "Obsolete files that readers in other processes may need.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.HeldFiles) }},
	{"garbage_files", "Files in an object store that wait to be deleted.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.GarbageFiles) }},
	{"garbage_bytes", "Bytes of files in an object store that wait to be deleted.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.GarbageBytes) }},
	{"failed_deletes_total", "Deletions in an object store that failed.", counter,
		func(m *kv.Metrics) float64 { return float64(m.FailedDeletes) }},

	{"writes_total", "Keys set, merged or deleted, and ranges deleted.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Writes) }},
	{"written_bytes_total", "Bytes of batches.", counter,
		func(m *kv.Metrics) float64 { return float64(m.WriteBytes) }},
	{"commit_groups_total", "Writes to the log, each of one or more batches.", counter,
		func(m *kv.Metrics) float64 { return float64(m.CommitGroups) }},
	{"wal_syncs_total", "Syncs of the log.", counter,
		func(m *kv.Metrics) float64 { return float64(m.WALSyncs) }},
	{"wal_bytes_total", "Bytes of logs that are closed.", counter,
		func(m *kv.Metrics) float64 { return float64(m.WALBytes) }},
	{"tx_commits_total", "Transactions that wrote and were committed.", counter,
		func(m *kv.Metrics) float64 { return float64(m.TxCommits) }},
	{"tx_conflicts_total", "Transactions that failed with a conflict.", counter,
		func(m *kv.Metrics) float64 { return float64(m.TxConflicts) }},
	{"stalls_total", "Writes that had to wait.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Stalls) }},
	{"stall_seconds_total", "Time that writes had to wait.", counter,
		func(m *kv.Metrics) float64 { return m.StallTime.Seconds() }},
	{"slowdowns_total", "Writes that were delayed.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Slowdowns) }},
	{"slowdown_seconds_total", "Time that writes were delayed.", counter,
		func(m *kv.Metrics) float64 { return m.SlowdownTime.Seconds() }},

	{"flushes_total", "Flushes of memtables.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Flushes) }},
	{"flushed_bytes_total", "Bytes of files that flushes wrote.", counter,
		func(m *kv.Metrics) float64 { return float64(m.FlushBytes) }},
	{"compactions_total", "Compactions that rewrote files.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Compactions) }},
	{"moves_total", "Files that went to another level without being rewritten.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Moves) }},
	{"compaction_read_bytes_total", "Bytes of files that compactions read.", counter,
		func(m *kv.Metrics) float64 { return float64(m.CompactionReadBytes) }},
	{"compaction_written_bytes_total", "Bytes of files that compactions wrote.", counter,
		func(m *kv.Metrics) float64 { return float64(m.CompactionWrittenBytes) }},
	{"compaction_rate_wait_seconds_total", "Time that compactions waited for CompactionRate.", counter,
		func(m *kv.Metrics) float64 { return m.CompactionRateTime.Seconds() }},
	{"compaction_debt_bytes", "Bytes that compactions have yet to read before nothing is due.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.CompactionDebt) }},
	{"running_compactions", "Compactions that run.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.RunningCompactions) }},
	{"ingests_total", "Calls of Ingest that took in files.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Ingests) }},
	{"ingested_files_total", "Files that were ingested.", counter,
		func(m *kv.Metrics) float64 { return float64(m.IngestedFiles) }},
	{"ingested_bytes_total", "Bytes of files that were ingested.", counter,
		func(m *kv.Metrics) float64 { return float64(m.IngestedBytes) }},
	{"operands_merged_total", "Merge operands that flushes and compactions combined.", counter,
		func(m *kv.Metrics) float64 { return float64(m.OperandsMerged) }},
	{"merge_failures_total", "Runs of operands that were kept because the merger failed.", counter,
		func(m *kv.Metrics) float64 { return float64(m.MergeFailures) }},
	{"expired_dropped_total", "Expired values that flushes and compactions dropped.", counter,
		func(m *kv.Metrics) float64 { return float64(m.ExpiredDropped) }},

	{"blob_files", "Blob files, in which large values lie.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Files) }},
	{"blob_bytes", "Bytes of the blob files.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Bytes) }},
	{"blob_records", "Values in blob files, with those that nothing refers to.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Records) }},
	{"blob_live_records", "Values in blob files that sorted files refer to.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.LiveRecords) }},
	{"blob_live_bytes", "Bytes in blob files that sorted files refer to.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.LiveBytes) }},
	{"blob_garbage_bytes", "Bytes in blob files that nothing refers to.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Garbage) }},
	{"blob_hidden_bytes", "Bytes in blob files that sorted files above the last level refer to.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.HiddenBytes) }},
	{"blob_written_bytes_total", "Bytes of blob files that were written, without what was relocated.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Written) }},
	{"blob_committed_bytes_total", "Bytes of blob files that commits wrote, which are among those written.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Committed) }},
	{"blob_relocated_bytes_total", "Bytes that compactions copied from one blob file to another.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Relocated) }},
	{"blob_reads_total", "Values that were read from blob files.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Reads) }},
	{"blob_cache_hits_total", "Values of blob files that were in the block cache.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.CacheHits) }},
	{"blob_read_bytes_total", "Bytes of blob files that were read for values.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Read) }},
	{"blob_collections_total", "Compactions that were picked to collect garbage of blob files.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Blobs.Collections) }},

	{"writable", "Whether the store takes writes: 0 after a failure, until it has resumed.", gauge,
		func(m *kv.Metrics) float64 { return writable(m) }},
	{"failures_total", "Times that the store stopped taking writes.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Failures) }},
	{"resume_attempts_total", "Attempts to take writes again.", counter,
		func(m *kv.Metrics) float64 { return float64(m.ResumeAttempts) }},
	{"resumes_total", "Times that the store took writes again by itself.", counter,
		func(m *kv.Metrics) float64 { return float64(m.Resumes) }},
	{"failed_compactions_total", "Compactions that failed.", counter,
		func(m *kv.Metrics) float64 { return float64(m.FailedCompactions) }},
	{"quarantined_tables", "Files that compactions leave alone, since they cannot be read.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.QuarantinedTables) }},
	{"recovery_drops_total", "Places in logs of which recovery dropped something.", counter,
		func(m *kv.Metrics) float64 { return float64(m.RecoveryDrops) }},
	{"recovery_dropped_bytes_total", "Bytes of logs that recovery dropped.", counter,
		func(m *kv.Metrics) float64 { return float64(m.RecoveryDroppedBytes) }},

	{"iterators", "Open iterators.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Iterators) }},
	{"snapshots", "Open snapshots, those of transactions included.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Snapshots) }},
	{"transactions", "Open transactions.", gauge,
		func(m *kv.Metrics) float64 { return float64(m.Transactions) }},
}

func writable(m *kv.Metrics) float64 {
	if m.Failure != "" {
		return 0
	}
	return 1
}
