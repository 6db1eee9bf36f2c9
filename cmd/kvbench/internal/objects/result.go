package objects

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/objstore"
)

// Schema names the form of a Result in JSON. It changes when a field changes its
// meaning or goes away.
const Schema = "kvbench.objects/v1"

// A Result is everything a run found out.
type Result struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Origin      string              `json:"object_store"` // what the objects were in
	Settings
	Rows        []Row       `json:"lookups"`           // by filter, shape, cache
	Operator    string      `json:"operations_filter"` // filter of the store that Operations are of
	Operations  []Operation `json:"operations"`
	Requests    Traffic     `json:"requests"` // all that the run has sent
	WallSeconds float64     `json:"wall_seconds"`
}

// Shapes of a store.
const (
	Settled = "settled" // one sorted run
	Young   = "young"   // the same, under young files
)

// A Row is what lookups cost in a store with one filter, in one shape, with one cache.
type Row struct {
	Filter  string `json:"filter"`
	Shape   string `json:"shape"`
	Cache   int64  `json:"cache_bytes"`  // of blocks; 0: none
	Limited bool   `json:"memory_short"` // Settings.Memory is the store's limit, and the cache what that leaves
	Files   int    `json:"files"`
	Runs    int    `json:"runs"`

	BitsPerKey     float64 `json:"bits_per_key"`    // of all filters, in the object store
	FiltersSkipped int64   `json:"filters_skipped"` // after the lookups, for want of memory

	Absent  Cost `json:"absent"`
	Present Cost `json:"present"` // uniform
	Zipfian Cost `json:"zipfian"` // of present keys
}

// CacheText names the cache.
func (r *Row) CacheText() string {
	switch {
	case r.Limited:
		return "short"
	case r.Cache == 0:
		return "none"
	}
	return bench.Size(r.Cache).String()
}

// A Cost is what lookups of one kind cost.
type Cost struct {
	Lookups           int     `json:"lookups"`
	Traffic           Traffic `json:"traffic"`
	DollarsPerMillion float64 `json:"dollars_per_million"` // lookups
}

// An Operation is what something other than lookups cost.
type Operation struct {
	Name              string  `json:"name"`
	Shape             string  `json:"shape"`
	Files             int     `json:"files"` // of the store before
	Operations        int     `json:"operations"`
	Traffic           Traffic `json:"traffic"`
	DollarsPerMillion float64 `json:"dollars_per_million"` // operations

	// The longest chain of requests of which each began after the one before had ended: the mean
	// of all repetitions, and the most.
	RoundTrips     float64 `json:"round_trips"`
	MostRoundTrips int     `json:"most_round_trips"`
	Milliseconds   float64 `json:"injected_ms"` // mean of a repetition, with the injected delay
}

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

// Traffic is what went to an object store and came from it.
type Traffic struct {
	Gets          int64 `json:"gets"`
	Puts          int64 `json:"puts"` // conditional ones included
	Lists         int64 `json:"lists"`
	Deletes       int64 `json:"deletes"`
	BytesReceived int64 `json:"bytes_received"`
	BytesSent     int64 `json:"bytes_sent"`
}

// trafficOf sums counts up.
func trafficOf(c objstore.Counts) Traffic {
	return Traffic{
		Gets: c[objstore.Get].Requests, Puts: c[objstore.Put].Requests + c[objstore.PutIfAbsent].Requests,
		Lists: c[objstore.List].Requests, Deletes: c[objstore.Delete].Requests,
		BytesReceived: c[objstore.Get].Bytes, BytesSent: c[objstore.Put].Bytes + c[objstore.PutIfAbsent].Bytes,
	}
}
