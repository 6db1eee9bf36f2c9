package sstable

import (
	"fmt"
	"io"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A Reader reads one file. It keeps the file's filter, index and range tombstones in memory, and blocks in a cache. All
// methods are safe for concurrent use, but Close must come last.
type Reader struct{ in *sstable.Reader }

// Open opens the file at path. Close closes it.
func Open(path string, o *ReaderOptions) (*Reader, error) {
	return wrap(sstable.Open(path, o.internal()))
}

// NewReader opens a file of size bytes. If f is an io.Closer, Close closes it; after an error it is left open. Opening
// takes one read if the options say how long the tail is, two at the most otherwise.
func NewReader(f io.ReaderAt, size int64, o *ReaderOptions) (*Reader, error) {
	return wrap(sstable.NewReader(f, size, o.internal()))
}

func wrap(in *sstable.Reader, err error) (*Reader, error) {
	if err != nil {
		return nil, err
	}
	return &Reader{in}, nil
}

// Get returns a copy of the newest value of key, or ErrNotFound. A value that has
// expired by time.Now is not found; if the newest version is a merge operand, the
// error matches ErrMergeOperand, and if that has its value in a blob file, ErrValueSeparated.
func (r *Reader) Get(key []byte) ([]byte, error) {
	if r.in.Closed() {
		return nil, ErrClosed
	}
	var p sstable.Probe
	value, trailer, ok, err := r.in.Find([]byte{}, key, filterpolicy.Hash(key), base.MaxSeqNum, &p)
	if err != nil {
		return nil, err
	}
	if ok {
		value, ok, err = r.live(key, trailer, value)
	}
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// live returns the value that a key's newest version gives without a store around it, and whether there is one.
func (r *Reader) live(key []byte, newest base.Trailer, stored []byte) (value []byte, ok bool, err error) {
	if r.in.Tombstones().Cover(key, base.MaxSeqNum) > newest.SeqNum() {
		return nil, false, nil
	}
	switch newest.Kind() {
	case base.KindSet:
		return stored, true, nil
	case base.KindSetTTL:
		expiry, value, ok := base.CutExpiry(stored)
		return value, ok && expiry > uint64(time.Now().UnixMicro()), nil
	case base.KindMerge:
		return nil, false, fmt.Errorf("%w: %s, key %q", ErrMergeOperand, r.in.Name(), key)
	case base.KindSetSeparated:
		return nil, false, r.separated(key, stored)
	case base.KindSetTTLSeparated:
		expiry, handle, _ := base.CutExpiry(stored)
		if expiry <= uint64(time.Now().UnixMicro()) {
			return nil, false, nil
		}
		return nil, false, r.separated(key, handle)
	}
	return nil, false, nil
}

// separated returns the error for a value in a blob file.
func (r *Reader) separated(key, handle []byte) error {
	h, err := blob.DecodeHandle(handle)
	if err != nil {
		return fmt.Errorf("%w: %s, key %q: %w", ErrCorruption, r.in.Name(), key, err)
	}
	return fmt.Errorf("%w: %s, key %q: %v", ErrValueSeparated, r.in.Name(), key, h)
}

// Verify reads the whole file, past the cache, and checks everything that a lookup relies on. It checks every checksum,
// the order of all keys, and that every separator is right for its block. It checks that the filters admit every key,
// that the hash tables lead to it, and that the properties are right. If the reader cannot decode a filter, only its
// checksum is checked. Prefixes are checked if the reader has their extractor or filterpolicy.ParsePrefix makes it. It
// returns all faults it found, joined, up to a bound; each matches ErrCorruption. If the file cannot be read, that ends
// the pass and is returned alone: it is no fault of the file.
func (r *Reader) Verify() error { return r.in.Verify() }

// Properties returns the file's properties. The caller must not change them.
func (r *Reader) Properties() *Properties { return r.in.Properties() }

// Info returns what Writer.Finish did. It reads the footer again.
func (r *Reader) Info() (*FileInfo, error) { return r.in.Info() }

// HasFilter reports whether lookups ask a filter.
func (r *Reader) HasFilter() bool { return r.in.HasFilter() }

// FilterError says why the file's filter is not used although it has one: it is
// damaged, or of a family that this program does not know. Nil otherwise.
func (r *Reader) FilterError() error { return r.in.FilterError() }

// HasPrefixFilter reports whether the filter holds the prefixes of the reader's extractor.
func (r *Reader) HasPrefixFilter() bool { return r.in.HasPrefixFilter() }

// MayContainPrefix reports whether the file may hold keys with a prefix; hash is the prefix's filterpolicy.Hash. It is
// true if the file's filter holds no prefixes of the reader's extractor.
func (r *Reader) MayContainPrefix(hash uint64) bool { return r.in.MayContainPrefix(hash) }

// HasRangeFilter reports whether MayContainRange asks a filter.
func (r *Reader) HasRangeFilter() bool { return r.in.HasRangeFilter() }

// RangeFilterError says why the file's range filter is not used although it has one: it is
// damaged, or of a family that this program does not know. Nil otherwise.
func (r *Reader) RangeFilterError() error { return r.in.RangeFilterError() }

// MayContainRange reports whether the file may have entries, tombstones of single keys among them,
// with keys of [lo, hi); nil is no bound. False is certain. Ranges of keys that are deleted are no entries:
// they say nothing. It reads nothing and allocates nothing.
func (r *Reader) MayContainRange(lo, hi []byte) bool { return r.in.MayContainRange(lo, hi) }

// PinnedBytes returns how many bytes of filters and of index the reader has in memory, in addition
// to the blocks in its cache.
func (r *Reader) PinnedBytes() (filter, index int64) { return r.in.PinnedBytes() }

// Close forgets the reader's cached blocks and closes the file. A second Close does nothing. A reader that has become
// garbage gives its memory back without Close, but does not close the file.
func (r *Reader) Close() error { return r.in.Close() }
