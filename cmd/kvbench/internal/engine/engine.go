package engine

import (
	"context"
	"time"
)

// A Kind says what is asked for in a run of lookups.
type Kind string

// The two kinds of lookups.
const (
	Existing Kind = "existing" // keys that were loaded
	Absent   Kind = "absent"   // keys between them
)

// Kinds lists the kinds in the order they are measured and reported.
var Kinds = []Kind{Existing, Absent}

// A Store holds the keys of one configuration of one engine. Methods are called
// from one goroutine: Put any number of times, Settle once, then the others.
type Store interface {
	// Put writes a key that was not written before; it may be buffered until
	// Settle. It does not keep the slices.
	Put(key, value []byte) error
	// Settle writes out what is buffered, flushes, compacts everything into the
	// last level and waits until no background work is left.
	Settle(ctx context.Context) error
	// Shape describes the settled tree.
	Shape() (Shape, error)
	// NewReader returns a reader for lookups of one kind through one of the
	// store's ways to look keys up. The caller closes it before the store.
	NewReader(access Access, kind Kind) (Reader, error)
	// Close releases the store; its directory stays.
	Close() error
}

// An Access is a way to look keys up.
type Access string

// Ways to look keys up.
const (
	Get      Access = "Get"      // the engine's point lookup
	Iterator Access = "iterator" // one iterator, reused: SeekPrefixGE with last-level filters
)

// A Reader looks keys up. It is used by one goroutine; several may each use one of
// their own at the same time.
type Reader interface {
	// Get appends the value of key to dst if the key is there.
	Get(dst, key []byte) (value []byte, found bool, err error)
	// Counters returns what the lookups of all readers of the store have done so far; two
	// calls are subtracted. Nobody looks anything up meanwhile.
	Counters() (Counters, error)
	// Close releases the reader.
	Close() error
}

// A Live store is used by several goroutines at once, which write to it while
// others read. Put and Settle are still for one goroutine.
type Live interface {
	Store
	// Set writes one key, durable on return if the settings say so. It does not
	// keep the slices.
	Set(key, value []byte) error
	// Delete deletes one key, as durably as Set writes one.
	Delete(key []byte) error
	// Scan calls visit with up to limit entries in key order, from the first at or
	// after start on; no limit if it is 0. It makes a view of its own for each call, as
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

// A Meter is a store that knows what it has written and what it keeps in memory.
type Meter interface {
	// Usage returns figures since the store was opened, and of now.
	Usage() Usage
}

// Usage is what a store has cost so far, in bytes.
type Usage struct {
	Logged       Count `json:"logged_bytes"`    // written to logs since it was opened
	Flushed      Count `json:"flushed_bytes"`   // written by flushes
	Compacted    Count `json:"compacted_bytes"` // written by compactions
	FilterMemory Count `json:"filter_memory_bytes"`
	IndexMemory  Count `json:"index_memory_bytes"`
	CacheMemory  Count `json:"cache_memory_bytes"` // blocks in the cache
}

// UnknownUsage is the usage of a store that is no Meter.
func UnknownUsage() Usage {
	return Usage{Unknown, Unknown, Unknown, Unknown, Unknown, Unknown}
}

// Written returns the bytes of sorted files written, by flushes and compactions.
func (u Usage) Written() Count { return u.Flushed.Plus(u.Compacted) }

// Background is a piece of work that a store did by itself, or a wait for it.
type Background struct {
	Kind        BackgroundKind
	Began       time.Time
	Ended       time.Time
	Level       int   // the upper input level of a compaction
	OutputLevel int   // of a compaction
	Bytes       int64 // written to sorted files
}

// A BackgroundKind is a kind of background work.
type BackgroundKind string

// Kinds of background work.
const (
	Flush      BackgroundKind = "flush"      // memtables are written to level 0
	Compaction BackgroundKind = "compaction" // files are merged; those that only change their level do not count
	Stall      BackgroundKind = "stall"      // writes wait for one of the others
)

// ended tells f of work that has ended just now.
func ended(f func(Background), b Background, took time.Duration) {
	b.Ended = time.Now()
	b.Began = b.Ended.Add(-took)
	f(b)
}
