// Package objects measures what a store in an object store costs: requests and bytes per lookup,
// scan and write, round trips, and dollars.
//
// A run makes one store per filter in an object store that counts requests, compacts it into one
// sorted run, asks it, puts young files into its level 0, and asks it again. Every answer is
// checked. Run is the only way in; Config.Open is for programs that have another object store.
package objects

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
)

// A Config says what to measure, and where.
type Config struct {
	Settings
	Dir      string // where a temporary directory is made; empty: the system's
	InMemory bool   // the object store is in memory, not in that directory
	Argv     []string
	Progress *progress.Reporter

	// Open, if set, returns the object store in place of those, empty, and Origin says what it is. Run deletes
	// all objects at the end, and closes it. A program in a module that has a client of a server sets
	// it, so that this module does without that client.
	Open   func() (objstore.Store, error)
	Origin string
}

// Settings are the exact settings of a run.
type Settings struct {
	Filters     []string `json:"filters"` // specs of filterpolicy.Parse, a store each
	Caches      []int64  `json:"caches"`  // sizes of the block cache, in bytes; 0: none
	Keys        int      `json:"keys"`
	KeySize     int      `json:"key_bytes"`
	ValueSize   int      `json:"value_bytes"`
	TargetFile  int64    `json:"target_file_bytes"`
	Compression string   `json:"compression"`
	Young       int      `json:"young"` // files in level 0, each of a hundredth of the keys
	// of each kind, per row; of absent keys up to absentLookups times as many
	Lookups     int           `json:"lookups"`
	Repetitions int           `json:"repetitions"`  // of each operation that is no lookup
	Memory      int64         `json:"memory_limit"` // of the rows with a limit, in bytes; 0: no such rows
	Delay       time.Duration `json:"delay_ns"`     // of each request of what is no lookup
	GetPrice    float64       `json:"get_price"`    // dollars per 1,000 GET
	PutPrice    float64       `json:"put_price"`    // dollars per 1,000 PUT and LIST
	Seed        uint64        `json:"seed"`
}

const (
	// absentLookups is how many times Lookups the absent keys may be: filters of many bits let one
	// in thousands pass.
	absentLookups = 40
	// writers put keys at the same time in the operation that says so.
	writers = 16
	// multiKeys and scanKeys are how many keys a MultiGet and a short scan have.
	multiKeys, scanKeys = 32, 100
	// youngPart of the keys are in a young file.
	youngPart = 100
	// batchKeys are written at a time while loading.
	batchKeys = 1000
)

func (c *Config) validate() error {
	_, err := bench.Specs(c.Filters, filterpolicy.Parse)
	if len(c.Filters) == 0 || len(c.Caches) == 0 {
		return bench.Usagef("--filter and --cache: nothing to measure without one of each")
	}
	none := func(size int64) bool { return size == 0 }
	return cmp.Or(err, bench.Within("--keys", youngPart, 1<<28, c.Keys), bench.Within("--young", 1, 64, c.Young),
		bench.Within("--target-file", 16<<10, 1<<30, c.TargetFile), bench.Within("--lookups", 1, 1<<24, c.Lookups),
		bench.Within("--reps", 1, 10_000, c.Repetitions), bench.Within("--delay", 1, 10_000, c.Delay.Milliseconds()),
		bench.Within("--memory", 4<<20, 1<<40, cmp.Or(c.Memory, 4<<20)),
		bench.Within("--cache", 64<<10, 1<<40, slices.DeleteFunc(slices.Clone(c.Caches), none)...),
		checkPrice("--get-price", c.GetPrice), checkPrice("--put-price", c.PutPrice),
		bench.CheckNames("--compression", []string{c.Compression}, bench.Compressions),
		bench.CheckTwice("--cache", c.Caches))
}

// checkPrice refuses what is no amount of dollars.
func checkPrice(flag string, dollars float64) error {
	if !(dollars >= 0) || math.IsInf(dollars, 1) {
		return bench.Usagef("%s %g: want dollars per 1,000 requests, 0 or more", flag, dollars)
	}
	return nil
}

func (c *Config) about(origin string) string {
	return fmt.Sprintf("A store in an object store (%s): %s keys of %d bytes, values of %d bytes, files of %s, %d "+
		"young ones, compression %s, seed %d", origin, bench.Count(c.Keys), c.KeySize, c.ValueSize,
		bench.Bytes(c.TargetFile), c.Young, c.Compression, c.Seed)
}

func (c *Config) notes() []string {
	notes := []string{
		fmt.Sprintf("$%g per 1,000 GET, $%g per 1,000 PUT and LIST. A young file has a hundredth of the keys.",
			c.GetPrice, c.PutPrice),
		"trips: the longest chain of requests of which each began after the one before had ended. It and ms are with " +
			"an injected delay of " + c.Delay.String() + " for each request; lookups had none.",
	}
	if c.Memory > 0 {
		notes = append(notes, fmt.Sprintf("short: a memory limit of %s, most of which memtables take: files whose "+
			"filters find no room are read as if they had none.", bench.Bytes(c.Memory)))
	}
	return notes
}

// Shapes of a store.
const (
	Settled = "settled" // one sorted run
	Young   = "young"   // the same, under young files
)

// LookupKinds are the kinds of lookups: of absent keys, of present ones evenly, and of present ones by Zipf.
var LookupKinds = []string{"absent", "present", "zipfian"}

// LookupCell names lookups in a store with one filter, in one shape, with one cache of blocks.
func LookupCell(filter, shape, cache string) tidy.Cell {
	return tidy.Of("filter", filter, "shape", shape, "cache", cache)
}

// OperationCell names an operation on a store of one shape with one filter.
func OperationCell(name, shape, filter string) tidy.Cell {
	return tidy.Of("operation", name, "shape", shape, "filter", filter)
}

// cacheText names a cache, each size by another name: shortMemory is what a limit of memory leaves.
func cacheText(bytes int64) string {
	switch bytes {
	case shortMemory:
		return "short"
	case 0:
		return "none"
	}
	text := bench.Bytes(bytes)
	if read, err := bench.ParseSize(text); err != nil || int64(read) != bytes { // it is rounded
		return bench.Count(bytes) + " B"
	}
	return text
}

// shortMemory is in place of the size of a cache.
const shortMemory = -1

// Names of operations.
const (
	Load         = "load and compact"
	OpenWriter   = "open for writing"
	OpenView     = "open a view"
	Poll         = "poll of an idle view"
	IdleWriter   = "idle writer, a second"
	MultiGet     = "MultiGet of 32 keys"
	Scan         = "scan of 100 keys"
	WholeScan    = "whole scan"
	FlushFile    = "flush of a file"
	SyncWrite    = "write with Sync"
	SyncTogether = "write with Sync, 16 writers"
	LocalWrite   = "write with Sync, log on the disk"
)

// An operation is something other than lookups, of which the cost is measured.
type operation struct {
	name        string
	repetitions int
	each        int // operations of a repetition
	do          func() error
}

// note measures operations, one after the other. db may be nil if they open it.
func (s *store) note(db *kv.DB, operations ...operation) error {
	for i := range operations {
		if err := s.noteOne(db, &operations[i]); err != nil {
			return err
		}
	}
	return nil
}

// noteOne measures an operation over a long wire, and adds its rows.
func (s *store) noteOne(db *kv.DB, op *operation) error {
	of := OperationCell(op.name, s.shape, s.policy.String())
	if db != nil {
		s.x.result.Add(of, "files", "", float64(engine.ShapeOf(db.Metrics()).Total().Files)) // before
	}
	defer s.x.wire.lengthen(0)
	var seconds float64
	var trips, maxTrips int // of the longest chains of requests of which each began after the one before had ended
	traffic, err := s.x.traffic(func() error {
		for range op.repetitions {
			s.x.wire.lengthen(s.x.Delay)
			started := time.Now()
			if err := op.do(); err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
			seconds += time.Since(started).Seconds()
			chain := s.x.wire.roundTrips()
			trips, maxTrips = trips+chain, max(maxTrips, chain)
		}
		return nil
	})
	reps, times := float64(op.repetitions), op.repetitions*op.each
	s.x.result.Add(of, "times", "", float64(times))
	s.x.cost(of, "", traffic, times)
	s.x.result.Add(of, "trips", "", float64(trips)/reps)
	s.x.result.Add(of, "most-trips", "", float64(maxTrips))
	s.x.result.Add(of, "time", "s", seconds/reps) // with the injected delay
	return err
}

// cost adds what n operations of a kind cost: requests and bytes of each, and dollars of a million. Requests that
// delete are free.
func (x *experiment) cost(of tidy.Cell, kind string, c objstore.Counts, n int) {
	puts, lists := c[objstore.Put].Requests+c[objstore.PutIfAbsent].Requests, c[objstore.List].Requests
	dollars := float64(c[objstore.Get].Requests)*x.GetPrice/1000 + float64(puts+lists)*x.PutPrice/1000
	per := 1 / float64(max(n, 1))
	for _, m := range []struct {
		name, unit string
		value      float64
	}{
		{"gets", "/op", float64(c[objstore.Get].Requests)}, {"puts", "/op", float64(puts)},
		{"lists", "/op", float64(lists)}, {"deletes", "/op", float64(c[objstore.Delete].Requests)},
		{"received", "bytes/op", float64(c[objstore.Get].Bytes)},
		{"sent", "bytes/op", float64(c[objstore.Put].Bytes + c[objstore.PutIfAbsent].Bytes)},
		{"dollars", "$/M op", 1e6 * dollars},
	} {
		x.result.Add(of, kind+m.name, m.unit, m.value*per)
	}
}
