package sstable

import (
	"bytes"
	"io"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A Writer writes one file: (Set | SetUntil | Delete | DeleteRange)*, then Finish. After an error
// every call returns it, and the file is worthless.
//
// All entries have sequence number zero: their order of age comes from the store that takes the file in.
//
// A writer holds one block, the file's index (about 1 % of the data) and what its filter builder collects (8 bytes per
// key for most families). It is not safe for concurrent use.
type Writer struct {
	in    *sstable.Writer
	value []byte // buffer of SetUntil
}

// ErrInvalidTTL is returned by SetUntil for a moment that is too late.
var ErrInvalidTTL = base.ErrInvalidTTL

// NewWriter returns a writer that writes to w, sequentially and buffered. The
// caller closes w, and syncs it if the file must last. Options that are wrong fail the first call.
func NewWriter(w io.Writer, o *WriterOptions) *Writer {
	return &Writer{in: sstable.NewWriter(w, (*sstable.WriterOptions)(o))}
}

// Set adds a key with its value. Keys must ascend, those of Delete included. Both slices are copied.
func (w *Writer) Set(key, value []byte) error {
	return w.in.Add(base.MakeKey(key, 0, base.KindSet), value)
}

// SetUntil is Set of a value that expires: at and after that moment, in whole microseconds, the key is absent, and its
// versions in files below stay hidden. The moment may have passed already. The zero Time is never, and one after the
// year 294,246 is an error that matches ErrInvalidTTL.
func (w *Writer) SetUntil(key, value []byte, expiry time.Time) error {
	if expiry.IsZero() {
		return w.Set(key, value)
	}
	at, err := base.ExpiryAt(expiry)
	if err != nil {
		return err
	}
	w.value = append(base.AppendExpiry(w.value[:0], at), value...)
	return w.in.Add(base.MakeKey(key, 0, base.KindSetTTL), w.value)
}

// Delete adds a tombstone for a key, in order with the keys of Set. In a file of its
// own it means nothing; it hides the key in files below.
func (w *Writer) Delete(key []byte) error {
	return w.in.AddDelete(key)
}

// DeleteRange adds a range tombstone for the keys of [start, end); a nil end has no bound. Range tombstones may come in
// any order among themselves and among the keys. One deletes nothing in its own file.
func (w *Writer) DeleteRange(start, end []byte) error {
	return w.in.AddTombstone(rangedel.Tombstone{Start: bytes.Clone(start), End: bytes.Clone(end)})
}

// Size returns about how many bytes the file has now, the tail included.
func (w *Writer) Size() int64 { return w.in.Size() }

// Finish writes what is left and the tail, and returns what the file is. It does
// not close or sync the underlying writer. It is the last call: later ones fail.
func (w *Writer) Finish() (*FileInfo, error) { return w.in.Finish() }
