package kv

import (
	"github.com/siftkv/siftkv/internal/operand"
)

// A Merger combines the operands of Merge with the value under them. All keys of a
// store share one; it may look at the key to tell kinds of values apart.
//
// It must be associative: with x*y for Merge(key, x, y), (a*b)*c and a*(b*c) are the same bytes. Values and operands
// are then of one kind. The value of a key is its last Set, if there is one, and all operands since, combined in the
// order in which they were written. It does not matter which are combined first. One operand alone, with no value
// under it, is the value.
//
// A Merger is used by several goroutines at once.
type Merger interface {
	// Name identifies the function. The store keeps it, and refuses a merger of another name as long as it holds
	// operands. A merger that computes something else needs another name. It has 1 to 255 bytes.
	Name() string

	// Merge combines two operands, or a value with the operand that follows it.
	// Older belongs to the merger: it may overwrite it, append to it and return it.
	// It must not change or keep key and newer, but may return newer or the end of it.
	//
	// Writes call it too, to keep many operands of one key short for readers: it must be
	// quick, and must not use the store.
	//
	// An error, or a panic, loses nothing: lookups of the key return a *MergeError, and compaction keeps the operands
	// as they are and tries again later. A runtime.Goexit ends the goroutine of a lookup, and makes a flush or
	// compaction fail. In a write it makes the store fail for good: writes return ErrReadOnly until it is opened again.
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
	ErrNoMerger = operand.ErrNoMerger
	// ErrMergeFailed is matched by every MergeError.
	ErrMergeFailed = operand.ErrFailed
)

// A MergeError says which key's operands could not be combined, and why: its fields are Merger, which is the merger's
// name, Key and Cause. The operands are kept: a store opened with a merger that can combine them returns the value.
// Merge returns it for an operand that Int64Add cannot combine with any, which is not written.
type MergeError = operand.Error

// Merge combines operand with the value of key by Options.Merger: with what Set or earlier operands left, or with
// nothing if there is no such key. It reads no file: lookups and compaction do the work, and of a key with many
// operands in memory one Merge in eight. An expiry of the value stays what it was: when it passes, the operands since
// then are what is left.
func (d *DB) Merge(key, operand []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.Merge(key, operand), o)
}

// Int64Add adds up counters: values and operands are signed integers of 8 bytes,
// little-endian (AppendInt64, Int64). Merge refuses other operands. Sums wrap around, as Go's do: an addition that
// stopped at the largest number would not be associative.
var Int64Add Merger = operand.Int64Add{}

// AppendInt64 appends n, as Int64Add wants it, to dst.
func AppendInt64(dst []byte, n int64) []byte { return operand.AppendInt64(dst, n) }

// Int64 is the inverse of AppendInt64. It refuses a value that has not 8 bytes.
func Int64(value []byte) (int64, error) { return operand.Int64(value) }

// Append returns a merger that puts each operand after the value, with a separator between the two; it may be empty.
// It is made for lists that stay small: a lookup returns all of the list. Compaction does not write lists that outgrow
// MaxValueSize, and a list that would outgrow MaxReaderSize cannot be read any more.
func Append(separator string) Merger { return operand.Append{Separator: separator} }
