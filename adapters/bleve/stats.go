package siftbleve

import (
	"encoding/json"

	"github.com/siftkv/siftkv/kv/metrics"
)

// Stats returns the figures of the store, which are read when they are marshaled: those of StatsMap, and all others of
// metrics.Store under "metrics".
func (s *Store) Stats() json.Marshaler { return stats{s} }

type stats struct{ s *Store }

func (t stats) MarshalJSON() ([]byte, error) {
	m := t.s.db.Metrics()
	all := figures(m)
	all["metrics"] = m
	return json.Marshal(all)
}

// StatsMap returns the figures that bleve puts among those of the index, under "kv". Counters start when the
// store was opened.
func (s *Store) StatsMap() map[string]any { return figures(s.db.Metrics()) }

func figures(m *metrics.Store) map[string]any {
	var files, entries uint64
	var size int64
	for _, l := range m.Levels {
		files += uint64(l.Files)
		entries += l.Entries
		size += l.Bytes
	}
	return map[string]any{
		"files":                    files,
		"file_bytes":               size,
		"blob_files":               m.Blobs.Files,
		"blob_file_bytes":          m.Blobs.Bytes,
		"entries":                  entries,
		"memtable_bytes":           m.MemtableBytes,
		"cache_bytes":              m.CacheBytes,
		"filter_bytes":             m.FilterMemory,
		"index_bytes":              m.IndexMemory,
		"gets":                     m.Gets,
		"writes":                   m.Writes,
		"write_bytes":              m.WriteBytes,
		"wal_syncs":                m.WALSyncs,
		"flushes":                  m.Flushes,
		"compactions":              m.Compactions,
		"compaction_read_bytes":    m.CompactionReadBytes,
		"compaction_written_bytes": m.CompactionWrittenBytes,
		"operands_merged":          m.OperandsMerged,
		"stalls":                   m.Stalls,
		"snapshots":                m.Snapshots,
		"iterators":                m.Iterators,
		"failure":                  m.Failure,
	}
}
