// Package engine puts the stores that kvbench compares under one interface, so
// that one loop loads, asks and counts them all.
//
// A Store is loaded and settled once. A Reader is one way to look keys up in
// it: Pebble, for one, has two that differ in whether they consult the filters
// of the last level. A counter that an engine does not keep is Unknown, which is
// not the same as zero.
package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
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
func UnknownUsage() Usage { return unknown[Usage]() }

// Written returns the bytes of sorted files written, by flushes and compactions.
func (u Usage) Written() Count { return u.Flushed.Plus(u.Compacted) }

// holdsNothing is part of readers that have nothing to release.
type holdsNothing struct{}

func (holdsNothing) Close() error { return nil }

// uncounted is part of readers of engines that keep no counters of lookups.
type uncounted struct{ holdsNothing }

func (uncounted) Counters() (Counters, error) {
	return Counters{Lookups: Unknown, MemtableAnswers: Unknown, Total: UnknownTally()}, nil
}

// onlyGet refuses every access but Get.
func onlyGet(engine string, access Access) error {
	if access != Get {
		return fmt.Errorf("%s: no access named %q", engine, access)
	}
	return nil
}

// batched is the part of a store that gathers what Put is given.
type batched struct {
	perKey int // keys per batch
	n      int // in the batch
	add    func(key, value []byte) error
	write  func() error // writes what was added, and waits for nothing
	reset  func()       // empties the batch
}

func (b *batched) Put(key, value []byte) error {
	if err := b.add(key, value); err != nil {
		return err
	}
	if b.n++; b.n < b.perKey {
		return nil
	}
	return b.commit()
}

func (b *batched) commit() error {
	err := b.write()
	b.n = 0
	b.reset()
	return err
}

// flat is the part of a store that has neither levels nor background work.
type flat struct{ batched }

func (f *flat) Settle(ctx context.Context) error { return cmp.Or(f.commit(), ctx.Err()) }

func (f *flat) Shape() (Shape, error) { return Shape{}, nil }

// upTo returns what calls visit and reports whether there may be more entries, up to a limit; no limit if it is 0.
func upTo(limit int, visit func(key, value []byte)) func(key, value []byte) (more bool) {
	n := 0
	return func(key, value []byte) bool {
		visit(key, value)
		n++
		return n != limit
	}
}

// until looks every interval whether something is done, and returns when it is.
func until(ctx context.Context, interval time.Duration, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
	return nil
}

// failed says what failed, if something did.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// A pairs collects the keys and values of a batch in one buffer.
type pairs struct {
	bytes []byte
	ends  []int // key i ends at ends[2i], its value at ends[2i+1]
}

func (p *pairs) add(key, value []byte) error {
	p.bytes = append(p.bytes, key...)
	p.ends = append(p.ends, len(p.bytes))
	p.bytes = append(p.bytes, value...)
	p.ends = append(p.ends, len(p.bytes))
	return nil
}

func (p *pairs) len() int { return len(p.ends) / 2 }

func (p *pairs) at(i int) (key, value []byte) {
	start := 0
	if i > 0 {
		start = p.ends[2*i-1]
	}
	return p.bytes[start:p.ends[2*i]:p.ends[2*i]], p.bytes[p.ends[2*i]:p.ends[2*i+1]:p.ends[2*i+1]]
}

// sorted returns the numbers of the pairs in key order; those of equal keys as they were added: the last must win.
func (p *pairs) sorted(order []int) []int {
	order = order[:0]
	for i := range p.len() {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int {
		ka, _ := p.at(a)
		kb, _ := p.at(b)
		return cmp.Or(bytes.Compare(ka, kb), cmp.Compare(a, b))
	})
	return order
}

func (p *pairs) reset() { p.bytes, p.ends = p.bytes[:0], p.ends[:0] }

// A Shape describes the files of a store.
type Shape struct {
	Levels []LevelShape `json:"levels"` // non-empty levels only, youngest first
	// ByRun has each sorted run of those levels in the order in which a lookup asks
	// them, with Runs 1 and no IndexBytes; nothing if the engine does not tell.
	ByRun []LevelShape `json:"by_run,omitempty"`
}

// A LevelShape describes the files of one level.
type LevelShape struct {
	Level       int   `json:"level"`
	Runs        int   `json:"runs"` // sorted runs that a lookup may have to ask: each flush in level 0
	Files       int   `json:"files"`
	Bytes       int64 `json:"bytes"` // on disk
	Entries     int64 `json:"entries"`
	FilterBytes int64 `json:"filter_bytes"` // on disk
	IndexBytes  int64 `json:"index_bytes"`  // on disk
}

// Total returns the sum over levels; its Level is -1.
func (s Shape) Total() LevelShape {
	var total LevelShape
	for _, l := range s.Levels {
		total = Plus(total, l)
	}
	total.Level = -1
	return total
}

// Settled reports whether everything is in one sorted run below level 0, whose files
// do not overlap: a lookup then considers one file at most.
func (s Shape) Settled() bool {
	return len(s.Levels) == 0 || len(s.Levels) == 1 && s.Levels[0].Level > 0 && s.Levels[0].Runs <= 1
}

// RunsOf returns the runs of a level, or, where the engine does not tell them apart, the
// level as one.
func (s Shape) RunsOf(l LevelShape) []LevelShape {
	var runs []LevelShape
	for _, r := range s.ByRun {
		if r.Level == l.Level {
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return []LevelShape{l}
	}
	return runs
}

// BitsPerKey returns the filter bits spent on each entry; 0 for an empty store.
func (l LevelShape) BitsPerKey() float64 {
	if l.Entries == 0 {
		return 0
	}
	return 8 * float64(l.FilterBytes) / float64(l.Entries)
}

// runs returns the sorted runs in a level of leveled compaction.
func runs(level, files int) int {
	if level == 0 {
		return files
	}
	return min(1, files)
}
