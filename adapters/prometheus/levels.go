package siftprometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/siftkv/siftkv/kv/metrics"
)

// A levelFigure is one of each level, with the label level, and source if that is not empty.
type levelFigure struct {
	name, help string
	kind       client.ValueType
	source     string
	value      func(l *metrics.Level) float64
}

var levelFigures = []levelFigure{
	{"level_files", "Sorted files of a level.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Files) }},
	{"level_runs", "Sorted runs of a level: a lookup asks one file of each at most.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Runs) }},
	{"level_bytes", "Bytes of the files of a level.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Bytes) }},
	{"level_entries", "Point entries of a level, tombstones included.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Entries) }},
	{"level_tombstones", "Point tombstones of a level.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Deletes) }},
	{"level_range_tombstones", "Range tombstones of a level.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.RangeDeletes) }},
	{"level_merge_operands", "Merge operands of a level.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Merges) }},
	{"level_expiring", "Values of a level that expire.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Expiring) }},
	{"level_filter_bytes", "Bytes of the filters of a level, on disk.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.FilterBytes) }},
	{"level_range_filter_bytes", "Bytes of the range filters of a level's open files, on disk.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.RangeFilterBytes) }},
	{"level_index_bytes", "Bytes of the indexes of a level, on disk.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.IndexBytes) }},
	{"level_blob_bytes", "Bytes in blob files that the files of a level refer to.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.BlobBytes) }},
	{"level_unfiltered_files", "Files of a level that were written without a filter.", gauge, "",
		func(l *metrics.Level) float64 { return float64(l.Unfiltered) }},

	{"scan_files_total", "Files that iterators came to.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.Files) }},
	{"scan_denied_by_prefix_total", "Files that a prefix filter kept iterators from.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.DeniedByPrefix) }},
	{"scan_denied_by_range_total", "Files that a range filter kept iterators from.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.DeniedByRange) }},
	{"scan_empty_total", "Files that iterators read and that had nothing within their bounds.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.Empty) }},
	{"scan_with_entries_total", "Files that iterators read and that had entries within their bounds.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.WithEntries) }},
	{"range_filter_false_positives_total", "Range filters that said maybe, of files that had nothing.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.RangeFalsePositives) }},
	{"range_filter_true_positives_total", "Range filters that said maybe, of files that had entries.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.RangeTruePositives) }},
	{"scan_blocks_from_cache_total", "Data blocks that iterators found in the cache.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.BlocksFromCache) }},
	{"scan_blocks_from_disk_total", "Data blocks that iterators read.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.BlocksFromDisk) }},
	{"scan_index_leaves_from_disk_total", "Index leaves that iterators read.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.IndexLeavesFromDisk) }},
	{"scan_bytes_from_disk_total", "Bytes that iterators read, as stored.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.BytesFromDisk) }},
	{"scan_bytes_decoded_total", "Bytes that iterators read, decompressed.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Scan.BytesDecoded) }},

	{"lookup_files_considered_total", "Files that lookups considered, one of each run at most.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.FilesConsidered) }},
	{"lookup_ruled_out_by_bounds_total", "Files that their bounds ruled out.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.RuledOutByBounds) }},
	{"lookup_ruled_out_by_range_tombstone_total", "Files that a range tombstone ruled out.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.RuledOutByRangeTombstone) }},
	{"filter_checks_total", "Filters that lookups checked.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.FilterChecks()) }},
	{"filter_negatives_total", "Filters that said that the key is not in the file.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.FilterNegatives) }},
	{"filter_true_positives_total", "Filters that said maybe, of files that had the key.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.FilterTruePositives) }},
	{"filter_false_positives_total", "Filters that said maybe, of files that did not have the key.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.FilterFalsePositives) }},
	{"filter_remembered_total", "Filters that said maybe, of files known not to have the key: nothing was read.",
		counter, "", func(l *metrics.Level) float64 { return float64(l.Lookup.FilterRemembered) }},
	{"lookup_unfiltered_total", "Files without a usable filter that lookups probed.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.Unfiltered) }},
	{"lookup_index_searches_total", "Indexes that lookups searched.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.IndexLookups) }},
	{"lookup_ruled_out_by_index_total", "Files that their index ruled out.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.RuledOutByIndex) }},
	{"lookup_blocks_total", "Blocks that lookups asked for, by where they came from.", counter, "cache",
		func(l *metrics.Level) float64 { return float64(l.Lookup.BlocksFromCache) }},
	{"lookup_blocks_total", "Blocks that lookups asked for, by where they came from.", counter, "disk",
		func(l *metrics.Level) float64 { return float64(l.Lookup.BlocksFromDisk) }},
	{"lookup_index_leaves_from_disk_total", "Parts of indexes that lookups read from disk.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.IndexLeavesFromDisk) }},
	{"lookup_read_bytes_total", "Bytes that lookups read from disk, as stored.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.BytesFromDisk) }},
	{"lookup_decoded_bytes_total", "Bytes that lookups read from disk, decompressed.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.BytesDecoded) }},
	{"lookup_hits_total", "Lookups that a level answered.", counter, "",
		func(l *metrics.Level) float64 { return float64(l.Lookup.Hits) }},
}
