package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/memtable"
)

// A Merger combines the operands of Merge with the value under them. All keys of a
// store share one; it may look at the key to tell kinds of values apart.
//
// It must be associative: with x*y for Merge(key, x, y), (a*b)*c and a*(b*c) are
// the same bytes. Values and operands are then of one kind. The value of a key is
// its last Set, if there is one, and all operands since, combined in the order in
// which they were written. It does not matter which are combined first. One operand
// alone, with no value under it, is the value.
//
// A Merger is used by several goroutines at once.
type Merger interface {
	// Name identifies the function. The store keeps it, and refuses a merger of
	// another name as long as it holds operands. A merger that computes something
	// else needs another name. It has 1 to 255 bytes.
	Name() string

	// Merge combines two operands, or a value with the operand that follows it.
	// Older belongs to the merger: it may overwrite it, append to it and return it.
	// It must not change or keep key and newer, but may return newer or the end of it.
	//
	// Writes call it too, to keep many operands of one key short for readers: it must be
	// quick, and must not use the store.
	//
	// An error, or a panic, loses nothing: lookups of the key return a *MergeError,
	// and compaction keeps the operands as they are and tries again later. A runtime.Goexit ends the goroutine of a
	// lookup, and makes a flush or compaction fail. In a write it makes the store fail for good: writes return
	// ErrReadOnly until it is opened again.
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
	// ErrMergeFailed is matched by every MergeError.
	ErrMergeFailed = errors.New("siftkv: merge failed")
)

// A MergeError says which key's operands could not be combined, and why. They are
// kept: a store opened with a merger that can combine them returns the value. Merge
// returns it for an operand that Int64Add cannot combine with any, which is not written.
type MergeError struct {
	Merger string // its name
	Key    []byte
	Cause  error
}

// Error names the merger, the key and the cause.
func (e *MergeError) Error() string {
	return fmt.Sprintf("%v: merger %q, key %q: %v", ErrMergeFailed, e.Merger, e.Key, e.Cause)
}

// Unwrap makes errors.Is(err, ErrMergeFailed) true, and that of the cause.
func (e *MergeError) Unwrap() []error { return []error{ErrMergeFailed, e.Cause} }

// An operandMerger combines the operands of a store.
type operandMerger struct {
	merger     Merger // nil: operands cannot be combined
	mergerName string // of the operands that the store holds or takes
	maxMerged  int64  // bytes of what combiner makes; 0: MaxValueSize
}

// limit returns the maximum of bytes of an entry that is made of operands.
func (m operandMerger) limit() int64 {
	if m.maxMerged > 0 {
		return m.maxMerged
	}
	return MaxValueSize
}

// mergeOperands combines values of one key for a reader, the oldest first; there is at least one. The result shares no
// memory with them. It may be as long as a value of SetReader, which operands can follow.
func (m operandMerger) mergeOperands(key []byte, values [][]byte) ([]byte, error) {
	return m.mergeWithin(MaxReaderSize, key, values)
}

// mergeWithin is mergeOperands for results of up to limit bytes.
func (m operandMerger) mergeWithin(limit int64, key []byte, values [][]byte) (value []byte, err error) {
	if m.merger == nil {
		return nil, fmt.Errorf("%w: key %q has operands of merger %q; set Options.Merger", ErrNoMerger, key,
			m.mergerName)
	}
	key = bytes.Clone(key) // what goes to the merger escapes
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the merger panicked: %v", p)
		}
		if err != nil {
			value, err = nil, &MergeError{Merger: m.mergerName, Key: key, Cause: err}
		}
	}()
	value = append([]byte{}, values[0]...)
	for _, v := range values[1:] {
		if value, err = m.merger.Merge(key, value, v); err == nil && int64(len(value)) > limit {
			err = fmt.Errorf("%w: the value has %d bytes with its operands, the limit is %d", ErrTooLarge, len(value),
				limit)
		}
		if err != nil {
			return nil, err
		}
		if sameArray(value, v) {
			value = bytes.Clone(value) // v is the store's, and value is about to be the merger's
		}
	}
	return value, nil
}

// sameArray reports whether two slices share an array, up to whose end both go.
func sameArray(a, b []byte) bool {
	return cap(a) > 0 && cap(b) > 0 && &a[:cap(a)][cap(a)-1] == &b[:cap(b)][cap(b)-1]
}

// combiner returns the function that combines operands in a memtable, a flush or a
// compaction; nil without a merger.
func (m operandMerger) combiner() memtable.Combine {
	if m.merger == nil {
		return nil
	}
	return func(key []byte, values [][]byte) ([]byte, error) { return m.mergeWithin(m.limit(), key, values) }
}

// countPass adds what a flush or compaction did to the counters.
func (d *DB) countPass(s *iterator.CompactionStats) {
	d.counters.OperandsMerged.Add(s.OperandsMerged)
	d.counters.MergeFailures.Add(s.MergeFailures)
	d.counters.ExpiredDropped.Add(s.Expired)
	if err := s.MergeError; err != nil {
		d.log.Warn("operands could not be combined, and are kept as they are", "runs", s.MergeFailures, "error", err)
	}
}

// Merge combines operand with the value of key by Options.Merger: with what Set or
// earlier operands left, or with nothing if there is no such key. It reads no file:
// lookups and compaction do the work, and of a key with many operands in memory one
// Merge in eight. An expiry of the value stays what it was: when
// it passes, the operands since then are what is left.
func (d *DB) Merge(key, operand []byte, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.Merge(key, operand), o)
}

// Int64Add adds up counters: values and operands are signed integers of 8 bytes,
// little-endian (AppendInt64, Int64). Merge refuses other operands. Sums wrap around, as Go's do: an addition that
// stopped at the largest number would not be associative.
var Int64Add Merger = int64Add{}

type int64Add struct{}

const int64AddName = "siftkv.int64add"

func (int64Add) Name() string { return int64AddName }

func (int64Add) Merge(_, older, newer []byte) ([]byte, error) {
	a, err := Int64(older)
	if err != nil {
		return nil, err
	}
	b, err := Int64(newer)
	if err != nil {
		return nil, err
	}
	return AppendInt64(older[:0], a+b), nil
}

// checkOperand returns a *MergeError for an operand that the store's merger could combine with nothing. Only Int64Add
// knows; another merger says so when it combines.
func (d *DB) checkOperand(key, operand []byte) error {
	if _, ok := d.operands.merger.(int64Add); !ok {
		return nil
	}
	if _, err := Int64(operand); err != nil {
		return &MergeError{Merger: int64AddName, Key: bytes.Clone(key), Cause: err}
	}
	return nil
}

// AppendInt64 appends n, as Int64Add wants it, to dst.
func AppendInt64(dst []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

// Int64 is the inverse of AppendInt64. It refuses a value that has not 8 bytes.
func Int64(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("siftkv: a counter has 8 bytes, this value has %d", len(value))
	}
	return int64(binary.LittleEndian.Uint64(value)), nil
}

// Append returns a merger that puts each operand after the value, with a separator
// between the two; it may be empty. It is made for lists that stay small: a lookup
// returns all of the list. Compaction does not write lists that outgrow MaxValueSize,
// and a list that would outgrow MaxReaderSize cannot be read any more.
func Append(separator string) Merger { return appendMerger{separator} }

type appendMerger struct{ separator string }

const appendName = "siftkv.append"

// Name includes the separator, quoted, unless there is none.
func (m appendMerger) Name() string {
	if m.separator == "" {
		return appendName
	}
	return appendName + ":" + strconv.Quote(m.separator)
}

func (m appendMerger) Merge(_, older, newer []byte) ([]byte, error) {
	return append(append(older, m.separator...), newer...), nil
}

// builtinMerger returns the merger of this package that has a name; nil for others.
func builtinMerger(name string) Merger {
	switch name {
	case int64AddName:
		return Int64Add
	case appendName:
		return Append("")
	}
	quoted, ok := strings.CutPrefix(name, appendName+":")
	if !ok {
		return nil
	}
	separator, err := strconv.Unquote(quoted)
	if m := Append(separator); err == nil && m.Name() == name {
		return m
	}
	return nil
}
