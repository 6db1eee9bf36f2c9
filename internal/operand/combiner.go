// Package operand combines merge operands: those of one key, oldest first, with the value under them if there is one.
// It has the mergers that kv offers, and bounds the values that any merger makes.
package operand

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// Errors of combining. Package kv re-exports them.
var (
	ErrNoMerger = errors.New("siftkv: no merger")
	ErrFailed   = errors.New("siftkv: merge failed")
)

// An Error names a key whose operands could not be combined. It matches ErrFailed, and its cause.
type Error struct {
	Merger string // its name
	Key    []byte
	Cause  error
}

// Error names the merger, the key and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("%v: merger %q, key %q: %v", ErrFailed, e.Merger, e.Key, e.Cause)
}

// Unwrap makes errors.Is(err, ErrFailed) true, and that of the cause.
func (e *Error) Unwrap() []error { return []error{ErrFailed, e.Cause} }

// A Merger combines two operands, or a value and an operand: see kv.Merger.
type Merger interface {
	Name() string
	Merge(key, older, newer []byte) ([]byte, error)
}

// A Combiner combines the operands of a store. Its methods are safe for concurrent use.
type Combiner struct {
	Merger   Merger // nil: operands cannot be combined
	Name     string // of the merger of the operands that the store has or takes
	MaxValue int64  // maximum of bytes that a reader gets
	MaxEntry int64  // maximum of bytes of an entry that is made of operands
}

// Value combines values of one key for a reader, the oldest first; there is at least one. The result shares no
// memory with them. It has up to MaxValue bytes: operands can follow the longest value.
func (c *Combiner) Value(key []byte, values [][]byte) ([]byte, error) {
	return c.combine(c.MaxValue, key, values)
}

// Entry is Value for an entry that replaces others, of up to MaxEntry bytes.
func (c *Combiner) Entry(key []byte, values [][]byte) ([]byte, error) {
	return c.combine(c.MaxEntry, key, values)
}

// EntryFunc returns Entry of a copy of c, for a memtable, a flush or a compaction; nil without a merger.
func (c Combiner) EntryFunc() func(key []byte, values [][]byte) ([]byte, error) {
	if c.Merger == nil {
		return nil
	}
	return c.Entry
}

func (c *Combiner) combine(limit int64, key []byte, values [][]byte) (value []byte, err error) {
	if c.Merger == nil {
		return nil, fmt.Errorf("%w: key %q has operands of merger %q; set Options.Merger", ErrNoMerger, key, c.Name)
	}
	key = bytes.Clone(key) // what goes to the merger escapes
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the merger panicked: %v", p)
		}
		if err != nil {
			value, err = nil, &Error{Merger: c.Name, Key: key, Cause: err}
		}
	}()
	value = append([]byte{}, values[0]...)
	for _, v := range values[1:] {
		if value, err = c.Merger.Merge(key, value, v); err == nil && int64(len(value)) > limit {
			err = fmt.Errorf("%w: the value has %d bytes with its operands, the limit is %d", base.ErrTooLarge,
				len(value), limit)
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

// Check returns an *Error for an operand that the merger could combine with nothing. Only Int64Add knows; another
// merger reports it when it combines.
func (c *Combiner) Check(key, operand []byte) error {
	if _, ok := c.Merger.(Int64Add); !ok {
		return nil
	}
	if _, err := Int64(operand); err != nil {
		return &Error{Merger: int64AddName, Key: bytes.Clone(key), Cause: err}
	}
	return nil
}
