//go:build rocksdb

package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine/rocksdb"
)

const hasRocksDB = true

// rocksDBBuild says what is unusual about how the library was built, if anything.
func rocksDBBuild() string {
	if rocksdb.Asserts() {
		return "; the library was built with its assertions and is slower than it could be"
	}
	return ""
}

type rocksDBStore struct {
	batched
	db      *rocksdb.DB
	batch   *rocksdb.Batch
	durable bool
}

// openRocksDBLive opens a store without statistics, which cost time.
func openRocksDBLive(dir string, s Settings) (Live, error) {
	return openRocksDB(dir, s, rocksDBFilters["bloom"]("10"), Tree{}, false)
}

// openRocksDBTree opens a store that counts what lookups do. The filter is in the form
// of RocksDB's options, empty for none.
func openRocksDBTree(dir string, s Settings, filter string, t Tree) (Store, error) {
	if t.FilterBudgetBytes > 0 {
		return nil, Unsupported("budget: rocksdb has none")
	}
	return openRocksDB(dir, s, filter, t, true)
}

func openRocksDB(dir string, s Settings, filter string, t Tree, statistics bool) (*rocksDBStore, error) {
	db, err := rocksdb.Open(dir, rocksDBOptions(s, filter, t), statistics)
	if err != nil {
		return nil, err
	}
	r := &rocksDBStore{db: db, batch: rocksdb.NewBatch(), durable: s.Durability == Durable}
	r.batched = batched{perKey: s.BatchKeys, write: func() error { return db.Write(r.batch, false) }, reset: func() {},
		add: func(key, value []byte) error {
			r.batch.Put(key, value)
			return nil
		}}
	return r, nil
}

// rocksDBOptions maps the settings to RocksDB's options. Filters and indexes of all
// files are in the block cache, where they count, and are pinned there, so that a
// lookup need not search it for them.
func rocksDBOptions(s Settings, filter string, t Tree) string {
	table := []string{
		fmt.Sprintf("block_size=%d", s.BlockBytes),
		fmt.Sprintf("block_cache=%d", s.CacheBytes),
		"cache_index_and_filter_blocks=true",
		"metadata_cache_options={top_level_index_pinning=kAll;partition_pinning=kAll;unpartitioned_pinning=kAll}",
		"whole_key_filtering=true",
	}
	if filter != "" {
		table = append(table, "filter_policy="+filter)
	}
	all := []string{
		"create_if_missing=true",
		"max_open_files=-1",
		"optimize_filters_for_hits=false",
		"level_compaction_dynamic_level_bytes=true",
		"max_background_flushes=1",
		fmt.Sprintf("max_background_compactions=%d", s.Compactions),
		fmt.Sprintf("write_buffer_size=%d", s.MemtableBytes),
		"compression=" + map[string]string{"none": "kNoCompression", "snappy": "kSnappyCompression",
			"zstd": "kZSTD"}[s.Compression],
		"block_based_table_factory={" + strings.Join(table, ";") + "}",
	}
	if t.FileBytes > 0 {
		all = append(all, fmt.Sprintf("target_file_size_base=%d", t.FileBytes))
	}
	if t.BaseLevelBytes > 0 {
		all = append(all, fmt.Sprintf("max_bytes_for_level_base=%d", t.BaseLevelBytes))
	}
	if s.SeparateFrom > 0 {
		all = append(all, "enable_blob_files=true", fmt.Sprintf("min_blob_size=%d", s.SeparateFrom),
			"enable_blob_garbage_collection=true",
			fmt.Sprintf("blob_garbage_collection_force_threshold=%.3f", s.garbageShare()))
	}
	if n := t.YoungFiles; n > 0 {
		all = append(all, fmt.Sprintf("level0_file_num_compaction_trigger=%d;level0_slowdown_writes_trigger=%d;"+
			"level0_stop_writes_trigger=%d", n+1, n+2, 2*n+4))
	}
	return strings.Join(all, ";")
}

func (r *rocksDBStore) Settle(ctx context.Context) error {
	if err := r.Rest(ctx); err != nil {
		return err
	}
	r.db.Compact()
	return r.Rest(ctx)
}

func (r *rocksDBStore) Rest(ctx context.Context) error {
	if err := r.commit(); err != nil {
		return err
	}
	if err := r.db.Flush(); err != nil {
		return err
	}
	if err := until(ctx, time.Millisecond, r.resting); err != nil {
		return err
	}
	if n := r.db.Number("rocksdb.background-errors"); n > 0 {
		return fmt.Errorf("rocksdb: %d errors in the background; see LOG in its directory", n)
	}
	return ctx.Err()
}

// resting reports whether nothing runs and nothing is due. A compaction that ends
// between two of the questions makes another version of the tree, and what it made due
// would be missed: the answer counts if the version is the same before and after.
func (r *rocksDBStore) resting() bool {
	const version = "rocksdb.current-super-version-number"
	before := r.db.Number(version)
	for _, name := range []string{
		"rocksdb.compaction-pending", "rocksdb.num-running-compactions", "rocksdb.mem-table-flush-pending",
		"rocksdb.num-running-flushes",
	} {
		if r.db.Number(name) > 0 {
			return false
		}
	}
	return r.db.Number(version) == before
}

func (r *rocksDBStore) Shape() (Shape, error) {
	var shape Shape
	for _, l := range r.db.Levels() {
		shape.Levels = append(shape.Levels, LevelShape{
			Level: l.Number, Runs: runs(l.Number, l.Files), Files: l.Files, Bytes: l.Bytes, Entries: l.Entries,
			FilterBytes: l.FilterBytes, IndexBytes: l.IndexBytes,
		})
	}
	return shape, nil
}

func (r *rocksDBStore) NewReader(access Access, _ Kind) (Reader, error) {
	return rocksDBReader{db: r.db}, onlyGet("rocksdb", access)
}

func (r *rocksDBStore) Set(key, value []byte) error { return r.db.Set(key, value, r.durable) }

func (r *rocksDBStore) Delete(key []byte) error { return r.db.Delete(key, r.durable) }

func (r *rocksDBStore) DeleteRange(start, end []byte) error {
	return r.db.DeleteRange(start, end, r.durable)
}

func (r *rocksDBStore) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	return r.db.Scan(start, limit, visit)
}

// Usage reads the properties and the statistics. Filters and indexes are in the cache.
func (r *rocksDBStore) Usage() Usage {
	u := UnknownUsage()
	u.CacheMemory = Count(r.db.Number("rocksdb.block-cache-usage"))
	if t := r.db.Tickers(); t != nil {
		u.Logged, u.Flushed, u.Compacted = Count(t["rocksdb.wal.bytes"]), Count(t["rocksdb.flush.write.bytes"]),
			Count(t["rocksdb.compact.write.bytes"])
	}
	return u
}

func (r *rocksDBStore) Close() error {
	r.batch.Close()
	r.db.Close()
	return nil
}

type rocksDBReader struct {
	holdsNothing
	db *rocksdb.DB
}

// Get copies the value out of the block that RocksDB pins.
func (r rocksDBReader) Get(dst, key []byte) ([]byte, bool, error) { return r.db.Get(dst, key) }

// Counters translates the statistics, which are of the whole database. Blocks are data
// blocks. Bytes are what was read from files for whatever purpose: filters and indexes
// are pinned, so that lookups in a store at rest read data blocks alone.
func (r rocksDBReader) Counters() (Counters, error) {
	c := Counters{Lookups: Unknown, MemtableAnswers: Unknown, Total: UnknownTally()}
	t := r.db.Tickers()
	if t == nil {
		return c, nil
	}
	count := func(name string) Count { return Count(t["rocksdb."+name]) }
	positives := count("bloom.filter.full.positive")
	c.Lookups, c.MemtableAnswers = count("number.keys.read"), count("memtable.hit")
	c.Total.Negatives, c.Total.TruePositives = count("bloom.filter.useful"), count("bloom.filter.full.true.positive")
	c.Total.FalsePositives, c.Total.Remembered = positives-c.Total.TruePositives, 0
	c.Total.FilterChecks = c.Total.Negatives + positives
	c.Total.BlocksFromCache, c.Total.BlocksFromDisk = count("block.cache.data.hit"), count("block.cache.data.miss")
	c.Total.BytesFromDisk = count("last.level.read.bytes") + count("non.last.level.read.bytes")
	c.Total.Answered = count("l0.hit") + count("l1.hit") + count("l2andup.hit")
	return c, nil
}
