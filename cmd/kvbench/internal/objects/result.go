package objects

import (
	"cmp"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/objstore"
)

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
	text := page.Size(bytes)
	if read, err := bench.ParseSize(text); err != nil || int64(read) != bytes { // it is rounded
		return page.Count(bytes) + " B"
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

// An operation is what something other than lookups cost.
type operation struct {
	name, shape, filter string
	files               int // of the store before
	times               int
	traffic             objstore.Counts
	trips, maxTrips     int     // of the longest chains of requests of which each began after the one before had ended
	seconds             float64 // with the injected delay
	repetitions         int     // of which each may be several operations
}

// add adds the rows of an operation.
func (x *experiment) add(op *operation) {
	of := OperationCell(op.name, op.shape, op.filter)
	x.result.Add(of, "files", "", float64(op.files))
	x.result.Add(of, "times", "", float64(op.times))
	x.cost(of, "", op.traffic, op.times)
	reps := float64(cmp.Or(op.repetitions, op.times))
	x.result.Add(of, "trips", "", float64(op.trips)/reps)
	x.result.Add(of, "most-trips", "", float64(op.maxTrips))
	x.result.Add(of, "time", "s", op.seconds/reps)
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
