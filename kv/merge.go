package kv

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/iterator"
)

// A Merger combines the operands of Merge with the value under them. All keys of a
// store share one; it may look at the key to tell kinds of values apart.
//
// It must be associative: with x*y for Merge(key, x, y), (a*b)*c and a*(b*c) are
// the same bytes. Values and operands are then of one kind: the value of a key is
// its last Set, if there is one, and all operands since, combined in the order in
// which they were written, and it does not matter which are combined first. One
// operand alone, with no value under it, is the value.
//
// A Merger is used by several goroutines at once.
type Merger interface {
	// Name identifies the function. The store keeps it, and refuses a merger of
	// another name as long as it holds operands. A merger that computes something
	// else needs another name. It has 1 to 255 bytes.
	Name() string

	// Merge combines two operands, or a value with the operand that follows it.
	// Older belongs to the merger: it may overwrite it, append to it and return it.
	// It must not change or keep key and newer.
	//
	// An error, or a panic, loses nothing: lookups of the key return a *MergeError,
	// and compaction keeps the operands as they are and tries again later.
	Merge(key, older, newer []byte) ([]byte, error)
}

// NewMerger makes a Merger of a name and a function; see Merger.Merge.
func NewMerger(name string, merge func(key, older, newer []byte) ([]byte, error)) Merger {
	return &funcMerger{name, merge}
}

type funcMerger struct {
	name  string
	merge func(key, older, newer []byte) ([]byte, error)
}

func (m *funcMerger) Name() string { return m.name }

func (m *funcMerger) Merge(key, older, newer []byte) ([]byte, error) {
	return m.merge(key, older, newer)
}

// Errors of merging.
var (
	// ErrNoMerger is returned by Merge if the store was opened without a Merger, and
	// by lookups of keys with operands that cannot be combined for that reason.
	ErrNoMerger = errors.New("siftkv: no merger")
	// ErrMerge is matched by every MergeError.
	ErrMerge = errors.New("siftkv: merge failed")
)

// A MergeError says which key's operands could not be combined, and why. They are
// kept: a store opened with a merger that can combine them returns the value.
type MergeError struct {
	Merger string // its name
	Key    []byte
	Cause  error
}

// Error names the merger, the key and the cause.
func (e *MergeError) Error() string {
	return fmt.Sprintf("%v: merger %q, key %q: %v", ErrMerge, e.Merger, e.Key, e.Cause)
}

// Unwrap makes errors.Is(err, ErrMerge) true, and that of the cause.
func (e *MergeError) Unwrap() []error { return []error{ErrMerge, e.Cause} }

// A merging is how the operands of a store are combined.
type merging struct {
	merger     Merger // nil: operands cannot be combined
	mergerName string // of the operands that the store holds or takes
}

// fold combines values of one key, the oldest first; there is at least one. The
// result shares no memory with them.
func (c merging) fold(key []byte, values [][]byte) (value []byte, err error) {
	m := c.merger
	if m == nil {
		return nil, fmt.Errorf("%w: key %q has operands of merger %q; set Options.Merger", ErrNoMerger, key,
			c.mergerName)
	}
	key = bytes.Clone(key) // what goes to the merger escapes
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, &MergeError{Merger: m.Name(), Key: key, Cause: fmt.Errorf("the merger panicked: %v", p)}
		}
	}()
	value = append([]byte{}, values[0]...)
	for _, v := range values[1:] {
		if value, err = m.Merge(key, value, v); err == nil {
			err = checkValue(value)
		}
		if err != nil {
			return nil, &MergeError{Merger: m.Name(), Key: key, Cause: err}
		}
	}
	return value, nil
}

// folder returns what combines operands in a flush or compaction; nil without a
// merger.
func (c merging) folder() func(key []byte, values [][]byte) ([]byte, error) {
	if c.merger == nil {
		return nil
	}
	return c.fold
}

// countPass adds what a flush or compaction did to the counters.
func (d *DB) countPass(c *iterator.Compaction) {
	d.counters.folded.Add(c.Stats.OperandsMerged)
	d.counters.refused.Add(c.Stats.MergeFailures)
	d.counters.expired.Add(c.Stats.Expired)
	if err := c.Stats.MergeError; err != nil {
		d.log.Warn("operands could not be combined, and are kept as they are", "runs", c.Stats.MergeFailures, "error",
			err)
	}
}

// Merge combines operand with the value of key by Options.Merger: with what Set or
// earlier operands left, or with nothing if there is no such key. It reads nothing:
// lookups and compaction do the work. An expiry of the value stays what it was: when
// it passes, the operands since then are what is left.
func (d *DB) Merge(key, operand []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	defer putScratchBatch(b)
	if err := b.Merge(key, operand); err != nil {
		return err
	}
	return b.Commit(o)
}
