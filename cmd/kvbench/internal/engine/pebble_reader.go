package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// NewReader returns a reader that uses Get, or one iterator that consults
// last-level filters.
func (p *Pebble) NewReader(access Access, kind Kind) (Reader, error) {
	switch access {
	case Get:
		return &pebbleGet{counters: pebbleCounters{p, kind}}, nil
	case Iterator:
		it, err := p.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return nil, fmt.Errorf("pebble: new iterator: %w", err)
		}
		p.iterators = append(p.iterators, it)
		return &pebbleIterator{pebbleCounters{p, kind}, it}, nil
	}
	return nil, fmt.Errorf("pebble: no access named %q", access)
}

// pebbleGet looks keys up with DB.Get.
type pebbleGet struct {
	holdsNothing
	counters pebbleCounters
}

// Get copies the value out and closes what DB.Get returns.
func (r *pebbleGet) Get(dst, key []byte) ([]byte, bool, error) {
	value, closer, err := r.counters.store.db.Get(key)
	if err != nil {
		//nolint:errorlint // the fast path comes first
		if err == pebble.ErrNotFound || errors.Is(err, pebble.ErrNotFound) {
			return dst, false, nil
		}
		return dst, false, fmt.Errorf("pebble: get: %w", err)
	}
	dst = append(dst, value...)
	return dst, true, closer.Close()
}

// Counters returns the counts of the whole database; bytes are those of the
// read category that DB.Get has for itself.
func (r *pebbleGet) Counters() (Counters, error) {
	m := r.counters.store.db.Metrics()
	var bytesRead uint64
	for _, c := range m.CategoryStats {
		if c.Category.String() == "pebble-get" {
			bytesRead = c.CategoryStats.BlockBytes - c.CategoryStats.BlockBytesInCache
		}
	}
	return r.counters.from(m, bytesRead), nil
}

// pebbleIterator looks keys up with one iterator.
type pebbleIterator struct {
	counters pebbleCounters
	it       *pebble.Iterator
}

// Get seeks the key as a prefix, which lets the iterator consult filters.
func (r *pebbleIterator) Get(dst, key []byte) ([]byte, bool, error) {
	if !r.it.SeekPrefixGE(key) || !bytes.Equal(r.it.Key(), key) {
		if err := r.it.Error(); err != nil {
			return dst, false, fmt.Errorf("pebble: seek: %w", err)
		}
		return dst, false, nil
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		return dst, false, fmt.Errorf("pebble: value: %w", err)
	}
	return append(dst, value...), true, nil
}

// Counters returns the counts of the whole database; bytes are those of all iterators
// that are open.
func (r *pebbleIterator) Counters() (Counters, error) {
	store := r.counters.store
	var bytesRead uint64
	for _, it := range store.iterators {
		s := it.Stats().InternalStats
		bytesRead += s.BlockBytes - s.BlockBytesInCache
	}
	return r.counters.from(store.db.Metrics(), bytesRead), nil
}

func (r *pebbleIterator) Close() error {
	store := r.counters.store
	store.iterators = slices.DeleteFunc(store.iterators, func(it *pebble.Iterator) bool { return it == r.it })
	return failed("pebble: close iterator", r.it.Close())
}

// pebbleCounters maps what Pebble counts to what kvbench reports.
type pebbleCounters struct {
	store *Pebble
	kind  Kind
}

// from translates metrics. Pebble's filter "hits" are negatives and its
// "misses" positives of both sorts. The harness knows which they are where the
// truth leaves no choice: an absent key has no true positive, and in a settled
// tree the only file considered for an existing key is the one that has it.
// Block counts are of every kind of block: Pebble does not tell data blocks
// from index and filter blocks.
func (c pebbleCounters) from(m *pebble.Metrics, bytesRead uint64) Counters {
	t := UnknownTally()
	t.Remembered = 0
	t.Negatives = Count(m.Filter.Hits)
	positives := Count(m.Filter.Misses)
	t.FilterChecks = t.Negatives + positives
	switch {
	case c.kind == Absent:
		t.TruePositives, t.FalsePositives = 0, positives
	case c.singleLevel(m):
		t.TruePositives, t.FalsePositives = positives, 0
	}
	t.BlocksFromCache = Count(m.BlockCache.Hits)
	t.BlocksFromDisk = Count(m.BlockCache.Misses)
	t.BytesFromDisk = Count(bytesRead)
	return Counters{Lookups: Unknown, MemtableAnswers: Unknown, Total: t}
}

func (c pebbleCounters) singleLevel(m *pebble.Metrics) bool {
	used := 0
	for i := range m.Levels {
		if m.Levels[i].TablesCount > 0 {
			used++
		}
	}
	return used == 1 && m.Levels[0].TablesCount == 0
}
