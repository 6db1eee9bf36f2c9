package engine

import (
	"bytes"
	"fmt"
	"slices"
)

// A Live store is used by several goroutines at once, which write to it while
// others read. Put and Settle are still for one goroutine.
type Live interface {
	Store
	// Set writes one key, durable on return if the settings say so. It does not
	// keep the slices.
	Set(key, value []byte) error
	// Scan calls visit with up to limit entries in key order, from the first at or
	// behind start on; no limit if it is 0. It makes a view of its own for each call, as
	// a program does that wants what is there now. The slices are visit's until it
	// returns.
	Scan(start []byte, limit int, visit func(key, value []byte)) error
}

// A Remembering store says what it keeps in memory.
type Remembering interface{ Memory() Memory }

// Memory is what a store has in memory, in bytes.
type Memory struct {
	Filters   int64 `json:"filters"`
	Indexes   int64 `json:"indexes"`
	Cache     int64 `json:"cache"`
	Memtables int64 `json:"memtables"`
}

// A Durability says what a Set that has returned survives.
type Durability string

// Durabilities, from the weakest on. An engine that lacks one gives the next
// stronger, except that none is stronger than what it can do without waiting for the
// disk.
const (
	Soon    Durability = "soon" // perhaps not the end of the process
	WithOS  Durability = "os"   // the end of the process
	Durable Durability = "disk" // the loss of power
)

// An openFunc opens or creates a store in dir.
type openFunc func(dir string, s Settings) (Live, error)

// PebbleIteratorName is the name of Pebble with lookups by one iterator, which does
// not see what is written later.
const PebbleIteratorName = "pebble-iterator"

// A peer is a store that Open knows.
type peer struct {
	name, notes string
	open        openFunc
}

// peers are the stores that Open knows, in the order of reports.
var peers = []peer{
	{"siftkv", "AppendGet; filter blocked:10 (the default) on every level; loads with kv.Async", openSiftKVLive},
	{"pebble", "Get, value copied, Close; bloom(10) on every level (its Get does not ask that of the last); NoSync has the commit with the OS soon", openPebbleLive},
	{PebbleIteratorName, "as pebble; lookups by one iterator, reused, with last-level filters: it does not see later writes", openPebbleIterator},
	{"badger", "View and Item.Value per get; values in the tree (ValueThreshold 1 MiB), Bloom filters at 1 %, indexes in memory, no conflict detection, no metrics; without compression no block cache: blocks come from its memory maps", openBadger},
	{"goleveldb", "Get; Bloom filter of 10 bits, no fsync unless asked for, 4,096 open files", openGoLevelDB},
	{"bbolt", "View per get, Bucket.Get, value copied; NoSync unless asked for, NoFreelistSync, hash map freelist, no statistics; each batch sorted by key; concurrent sets by DB.Batch; neither cache, filter nor compression: a memory map", openBBolt},

	{RocksDBName, "Get with the value copied, in one call from Go; full Bloom filter of 10 bits on every level, whole keys; filters and indexes in the block cache, pinned; levels sized from the last; no statistics; NoSync has each commit with the OS", openRocksDBLive},
}

// Peers lists the names that Open accepts: RocksDB's only if it is built in.
func Peers() []string {
	var names []string
	for _, p := range peers {
		if p.name != RocksDBName || hasRocksDB {
			names = append(names, p.name)
		}
	}
	return names
}

// Open opens or creates the store of a named engine in dir.
func Open(name, dir string, s Settings) (Live, error) {
	if err := CheckName("engine", name, Peers()); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
	return peers[at].open(dir, s)
}

// Notes says how the store of a named engine is used, and with which settings
// beside the common ones.
func Notes(name string) string {
	for _, p := range peers {
		if p.name == RocksDBName && name == RocksDBName {
			return p.notes + rocksDBBuild()
		}
		if p.name == name {
			return p.notes
		}
	}
	return ""
}

// Compresses reports whether a named engine has compression.
func Compresses(name string) bool { return name != "bbolt" }

// LogStructured reports whether a named engine is a log-structured store.
func LogStructured(name string) bool { return name != "bbolt" }

// uncounted is part of readers of engines that keep no counters of lookups.
type uncounted struct{}

// Counters has nothing to count.
func (uncounted) Counters() (Counters, error) {
	return Counters{Lookups: Unknown, MemtableAnswers: Unknown, Total: UnknownTally()}, nil
}

// Close does nothing: the reader holds nothing.
func (uncounted) Close() error { return nil }

// onlyGet refuses every access but Get.
func onlyGet(engine string, access Access) error {
	if access != Get {
		return fmt.Errorf("%s: no access named %q", engine, access)
	}
	return nil
}

// A pairs collects the keys and values of a batch in one buffer.
type pairs struct {
	bytes []byte
	ends  []int // key i ends at ends[2i], its value at ends[2i+1]
}

func (p *pairs) add(key, value []byte) {
	p.bytes = append(p.bytes, key...)
	p.ends = append(p.ends, len(p.bytes))
	p.bytes = append(p.bytes, value...)
	p.ends = append(p.ends, len(p.bytes))
}

func (p *pairs) len() int { return len(p.ends) / 2 }

func (p *pairs) at(i int) (key, value []byte) {
	start := 0
	if i > 0 {
		start = p.ends[2*i-1]
	}
	return p.bytes[start:p.ends[2*i]:p.ends[2*i]], p.bytes[p.ends[2*i]:p.ends[2*i+1]:p.ends[2*i+1]]
}

// sorted returns the numbers of the pairs in key order.
func (p *pairs) sorted(order []int) []int {
	order = order[:0]
	for i := range p.len() {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int {
		ka, _ := p.at(a)
		kb, _ := p.at(b)
		return bytes.Compare(ka, kb)
	})
	return order
}

func (p *pairs) reset() { p.bytes, p.ends = p.bytes[:0], p.ends[:0] }
