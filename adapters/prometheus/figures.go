package siftprometheus

import (
	"slices"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv/metrics"
)

// A figure is one of a store, of a level, or of a kind of requests. A counter is also known of a store that is closed.
type figure struct {
	name, help string
	kind       client.ValueType
	value      float64
	// The name and the value of a label in addition to those of the level or the kind of requests; nil: there is none.
	label, labelValue []string
}

type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

func counter[N number](name, help string, n N) figure {
	return figure{name: name, help: help, kind: client.CounterValue, value: float64(n)}
}

func gauge[N number](name, help string, n N) figure {
	return figure{name: name, help: help, kind: client.GaugeValue, value: float64(n)}
}

func (f figure) with(label, value string) figure {
	f.label, f.labelValue = []string{label}, []string{value}
	return f
}

func figuresOf(m *metrics.Store) []figure {
	return slices.Concat(figuresOfReads(m), figuresOfWrites(m), figuresOfBlobs(m), figuresOfState(m))
}

func figuresOfReads(m *metrics.Store) []figure {
	return []figure{
		counter("gets_total", "Point lookups: Get, AppendGet, Has, and the keys of MultiGet.", m.Gets),
		counter("memtable_hits_total", "Point lookups that a memtable answered.", m.MemtableHits),
		counter("prefix_filter_checks_total", "Files whose prefix filter an iterator checked.", m.PrefixChecks),
		counter("prefix_filter_negatives_total",
			"Files that an iterator skipped by their prefix filter.", m.PrefixNegatives),
		counter("unusable_filters_total",
			"Files found whose filter is damaged or of an unknown family.", m.UnusableFilters),
		counter("filter_loads_total",
			"Filters that were read again after they gave way for lack of memory.", m.FilterLoads),
		counter("closed_tables_total", "Sorted files that were closed for lack of memory.", m.ClosedTables),

		gauge("filter_memory_bytes", "Memory of filters of open files.", m.FilterMemory),
		gauge("index_memory_bytes", "Memory of indexes of open files.", m.IndexMemory),
		gauge("false_positive_memory_bytes",
			"Memory of false positives of filters that are not paid for again.", m.FalsePositiveMemory),
		gauge("cache_bytes", "Memory of the blocks in the cache.", m.CacheBytes),
		gauge("cache_blocks", "Blocks in the cache.", m.CacheBlocks),
		gauge("memtable_bytes", "Memory of memtables.", m.MemtableBytes),
		gauge("memtables", "Memtables, the active one included.", m.Memtables),
		gauge("filters_on_disk", "Filters of open files that are not in memory for lack of it.", m.FiltersSkipped),
		gauge("open_tables", "Sorted files whose index is in memory.", m.OpenTables),
		gauge("open_files", "Sorted files that are open.", m.OpenFiles),
		gauge("held_files", "Obsolete files that readers in other processes may need.", m.HeldFiles),
		gauge("garbage_files", "Files in an object store that wait to be deleted.", m.Objects.GarbageFiles),
		gauge("garbage_bytes", "Bytes of files in an object store that wait to be deleted.", m.Objects.GarbageBytes),
		counter("failed_deletes_total", "Deletions in an object store that failed.", m.Objects.FailedDeletes),
		gauge("object_writer_epoch", "Epoch of the writer in an object store.", m.Objects.Epoch),
		gauge("object_entries_since_list",
			"Entries in an object store since the last list of files.", m.Objects.EntriesSinceList),
		counter("disk_cache_hits_total",
			"Reads of files in an object store that the cache on the local disk answered.", m.Objects.DiskCacheHits),
		counter("disk_cache_misses_total",
			"Reads of files in an object store that needed a request.", m.Objects.DiskCacheMisses),
		counter("disk_cache_hit_bytes_total",
			"Bytes that the cache on the local disk answered.", m.Objects.DiskCacheHitBytes),
		counter("disk_cache_evicted_pages_total",
			"Pages of the cache on the local disk that gave way.", m.Objects.DiskCacheEvicted),
		counter("disk_cache_dropped_pages_total",
			"Pages that were not written to the cache on the local disk.", m.Objects.DiskCacheDropped),
		counter("disk_cache_damaged_total",
			"Pages and files of the cache on the local disk that were damaged.", m.Objects.DiskCacheDamaged),
		counter("disk_cache_failures_total",
			"Operations of the cache on the local disk that failed.", m.Objects.DiskCacheFailures),
		gauge("disk_cache_bytes", "Bytes of the cache on the local disk.", m.Objects.DiskCacheBytes),
	}
}

func figuresOfWrites(m *metrics.Store) []figure {
	return []figure{
		counter("writes_total", "Keys set, merged or deleted, and ranges deleted.", m.Writes),
		counter("written_bytes_total", "Bytes of batches.", m.WriteBytes),
		counter("commit_groups_total", "Writes to the log, each of one or more batches.", m.CommitGroups),
		counter("wal_syncs_total", "Syncs of the log.", m.WALSyncs),
		counter("wal_bytes_total", "Bytes of logs that are closed.", m.WALBytes),
		counter("tx_commits_total", "Transactions that wrote and were committed.", m.TxCommits),
		counter("tx_conflicts_total", "Transactions that failed with a conflict.", m.TxConflicts),
		counter("stalls_total", "Writes that had to wait.", m.Stalls),
		counter("stall_seconds_total", "Time that writes had to wait.", m.StallTime.Seconds()),
		counter("slowdowns_total", "Writes that were delayed.", m.Slowdowns),
		counter("slowdown_seconds_total", "Time that writes were delayed.", m.SlowdownTime.Seconds()),

		counter("flushes_total", "Flushes of memtables.", m.Flushes),
		counter("flushed_bytes_total", "Bytes of files that flushes wrote.", m.FlushBytes),
		counter("compactions_total", "Compactions that rewrote files.", m.Compactions),
		counter("moves_total", "Files that went to another level without being rewritten.", m.Moves),
		counter("compaction_read_bytes_total", "Bytes of files that compactions read.", m.CompactionReadBytes),
		counter("compaction_written_bytes_total", "Bytes of files that compactions wrote.", m.CompactionWrittenBytes),
		counter("idle_compactions_total", "Compactions of an idle store that make reads cheaper.", m.IdleCompactions),
		counter("idle_compaction_written_bytes_total", "Bytes of files that these wrote.", m.IdleCompactionBytes),
		counter("compaction_rate_wait_seconds_total",
			"Time that compactions waited for CompactionRate.", m.CompactionRateTime.Seconds()),
		gauge("compaction_debt_bytes",
			"Bytes that compactions have yet to read before nothing is due.", m.CompactionDebt),
		gauge("running_compactions", "Compactions that run.", m.RunningCompactions),
		counter("ingests_total", "Calls of Ingest that took in files.", m.Ingests),
		counter("ingested_files_total", "Files that were ingested.", m.IngestedFiles),
		counter("ingested_bytes_total", "Bytes of files that were ingested.", m.IngestedBytes),
		counter("operands_merged_total", "Merge operands that flushes and compactions combined.", m.OperandsMerged),
		counter("merge_failures_total", "Runs of operands that were kept because the merger failed.", m.MergeFailures),
		counter("expired_dropped_total", "Expired values that flushes and compactions dropped.", m.ExpiredDropped),
	}
}

func figuresOfBlobs(m *metrics.Store) []figure {
	return []figure{
		gauge("blob_files", "Blob files, in which large values lie.", m.Blobs.Files),
		gauge("blob_bytes", "Bytes of the blob files.", m.Blobs.Bytes),
		gauge("blob_records", "Values in blob files, with those that nothing refers to.", m.Blobs.Records),
		gauge("blob_live_records", "Values in blob files that sorted files refer to.", m.Blobs.LiveRecords),
		gauge("blob_live_bytes", "Bytes in blob files that sorted files refer to.", m.Blobs.LiveBytes),
		gauge("blob_garbage_bytes", "Bytes in blob files that nothing refers to.", m.Blobs.Garbage),
		gauge("blob_hidden_bytes",
			"Bytes in blob files that sorted files above the last level refer to.", m.Blobs.HiddenBytes),
		counter("blob_written_bytes_total",
			"Bytes of blob files that were written, without what was relocated.", m.Blobs.Written),
		counter("blob_committed_bytes_total",
			"Bytes of blob files that commits wrote, which are among those written.", m.Blobs.Committed),
		counter("blob_relocated_bytes_total",
			"Bytes that compactions copied from one blob file to another.", m.Blobs.Relocated),
		counter("blob_reads_total", "Values that were read from blob files.", m.Blobs.Reads),
		counter("blob_cache_hits_total", "Values of blob files that were in the block cache.", m.Blobs.CacheHits),
		counter("blob_read_bytes_total", "Bytes of blob files that were read for values.", m.Blobs.Read),
		counter("blob_collections_total",
			"Compactions that were picked to collect garbage of blob files.", m.Blobs.GCs),
	}
}

func figuresOfState(m *metrics.Store) []figure {
	return []figure{
		gauge("writable", "Whether the store takes writes: 0 after a failure, until it has resumed.", writable(m)),
		counter("failures_total", "Times that the store stopped taking writes.", m.Failures),
		counter("resume_attempts_total", "Attempts to take writes again.", m.ResumeAttempts),
		counter("resumes_total", "Times that the store took writes again by itself.", m.Resumes),
		counter("failed_compactions_total", "Compactions that failed.", m.FailedCompactions),
		gauge("quarantined_tables",
			"Files that compactions leave alone, since they cannot be read.", m.QuarantinedTables),
		counter("recovery_drops_total", "Places in logs of which recovery dropped something.", m.RecoveryDrops),
		counter("recovery_dropped_bytes_total", "Bytes of logs that recovery dropped.", m.RecoveryDroppedBytes),

		gauge("iterators", "Open iterators.", m.Iterators),
		gauge("snapshots", "Open snapshots, those of transactions included.", m.Snapshots),
		gauge("transactions", "Open transactions.", m.Transactions),
	}
}

func writable(m *metrics.Store) float64 {
	if m.Failure != "" {
		return 0
	}
	return 1
}
