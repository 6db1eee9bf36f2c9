// Package source is what siftimport asks of a store that it reads, whatever wrote it. One package beside it for each
// kind of store answers.
package source

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// What is wrong with a source. Errors of this package's siblings match one of these where they know.
var (
	// ErrInUse: another process has the store open.
	ErrInUse = errors.New("is open in another process: close it there first")
	// ErrNoStore: there is no such store.
	ErrNoStore = errors.New("holds no such store")
	// ErrDamaged: bytes of the store are not what was written.
	ErrDamaged = errors.New("is damaged")
	// ErrUnsupported: the store is whole, and something in it has no counterpart in a store of package kv.
	ErrUnsupported = errors.New("cannot be imported")
)

// An Entry is a key with its value. Slices are valid during one call of a visitor.
type Entry struct {
	Key, Value []byte
	Expiry     time.Time // zero: never
}

// A Visitor is called with entries, and ends a scan by an error.
type Visitor func(e *Entry) error

// A Store is a store of another library, which is not changed, and which others are kept from changing. One Scan
// runs at a time unless it is Parallel; Before may be called from its visitor.
type Store interface {
	// Scan visits all entries of a range in ascending bytewise order, and returns the visitor's error as it is.
	// Every scan sees the same entries.
	Scan(r Range, visit Visitor) error
	// Parallel reports whether several ranges may be scanned at once. If not, ranges have no To.
	Parallel() bool
	// Check is called after scans of all ranges from a key on, none of which failed, and none of which runs. It
	// returns an error if they did not come upon all that is there.
	Check() error
	// Size is about how many bytes the store takes on disk.
	Size() int64
	// Before is about how many of these bytes are of keys before key. It is -1 if the store cannot say.
	Before(key []byte) int64
	// Notes says, in a line each, what the last scans of all ranges met and did not pass on.
	Notes() []string
	// Close gives the store free.
	Close() error
}

// Whole has the methods of a Store whose scans run at once and report all that they cannot read.
type Whole struct{}

// Parallel implements Store.
func (Whole) Parallel() bool { return true }

// Check implements Store. What cannot be read has been an error of a scan.
func (Whole) Check() error { return nil }

// Notes implements Store.
func (Whole) Notes() []string { return nil }

// Scan guards a scan, which ends when its visitor returns an error. It returns the error of visit as it is, and others
// as explain has them.
func Scan(visit Visitor, explain func(error) error, scan func(visit Visitor) error) error {
	var stop error
	err := Guard(func() error {
		return scan(func(e *Entry) error {
			stop = visit(e)
			return stop
		})
	})
	if stop != nil {
		return stop
	}
	return explain(err)
}

// Guard calls f, which reads a store through a library that takes what is mapped from a file as it finds it. A panic,
// or a fault in such memory, becomes an error that matches ErrDamaged.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return f()
}
