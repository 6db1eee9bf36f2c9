package sstable

import (
	"bytes"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
)

// An Iter walks a file's point entries in internal-key order: every version and
// every tombstone. It is on an entry or not (Valid); First, Last and the seeks
// put it on one. It is not safe for concurrent use. All moves report whether the
// iterator is on an entry; after false, Error tells whether that is the end.
type Iter struct {
	r     *Reader
	lift  base.Trailer // what Reader.lift adds
	fill  bool
	block blockIter
	loc   location
	memo  leafMemo
	data  []byte // the block, copied out of the cache
	ahead readAhead
	err   error
	seek  []byte // buffer of local

	separator []byte // buffer of endsWith

	// Probe counts what the iterator read.
	Probe Probe
}

// IterOptions are the settings of an Iter.
type IterOptions struct {
	// Sequential is for one pass over much of the file: it reads ahead in large
	// pieces and leaves the cache as it is.
	Sequential bool
}

// NewIter returns an iterator that is on no entry.
func (r *Reader) NewIter(o IterOptions) *Iter {
	i := &Iter{}
	i.Init(r, o)
	return i
}

// Init makes i an iterator over r, keeping i's buffers.
func (i *Iter) Init(r *Reader, o IterOptions) {
	*i = Iter{r: r, lift: r.lift(0), fill: !o.Sequential, seek: i.seek[:0], data: i.data[:0], separator: i.separator[:0], block: blockIter{key: base.InternalKey{User: i.block.key.User[:0]}}}
	if o.Sequential {
		i.ahead = readAhead{file: r.file, limit: int64(r.props.DataBytes), buf: i.ahead.buf[:0]}
	}
}

// Release makes i an iterator over nothing, which refers to no reader and keeps its
// buffers for the next Init.
func (i *Iter) Release() {
	if cap(i.data) > keptBuffer {
		i.data = nil
	}
	*i = Iter{seek: i.seek[:0], data: i.data[:0], separator: i.separator[:0], block: blockIter{key: base.InternalKey{User: i.block.key.User[:0]}}}
}

// keptBuffer bounds the block buffer that Release keeps, in bytes.
const keptBuffer = 256 << 10

// Valid reports whether the iterator is on an entry.
func (i *Iter) Valid() bool { return i.block.valid && i.err == nil }

// Key returns the entry's key, valid until the next move.
func (i *Iter) Key() base.InternalKey {
	return base.InternalKey{User: i.block.key.User, Trailer: i.block.key.Trailer | i.lift}
}

// Value returns the entry's value, valid until the next move; of a sequential
// iterator, as long as the caller likes. It must not be changed.
func (i *Iter) Value() []byte { return i.block.value }

// Error returns what ended the iteration early, if anything did.
func (i *Iter) Error() error { return i.err }

// open puts the block iterator into the block at loc.
func (i *Iter) open(loc location) bool {
	i.loc = loc
	data, err := i.load(loc)
	if err != nil {
		i.fail(err)
		return false
	}
	i.block.reset(viewBlock(data))
	return true
}

// load returns a block's bytes: for a sequential pass in memory of their own, else in
// the iterator's. The copy is a third of the profile of a full scan, and pays: it fetches
// the block's cache lines all at once, and iterators that pinned the block in place of it were 8 %
// slower in full scans and 17 % in scans of 10.
func (i *Iter) load(loc location) ([]byte, error) {
	if i.ahead.file != nil {
		if data, ok := i.r.cache.Pin(&i.r.slots[loc.block]); ok {
			data = bytes.Clone(data)
			i.r.slots[loc.block].Unpin()
			return data, nil
		}
		offset, length := i.r.place(loc)
		return i.r.readBlock(&i.ahead, dataBlock, offset, length)
	}
	if i.r.mapped != nil {
		data, ok, err := i.r.copyMapped(i.data[:0], loc, &i.Probe)
		if ok || err != nil {
			i.data = data
			return data, err
		}
	}
	h, err := i.r.hold(dataBlock, loc, i.fill, &i.Probe)
	if err != nil {
		return nil, err
	}
	i.data = append(i.data[:0], h.data...)
	h.release()
	return i.data, nil
}

func (i *Iter) fail(err error) {
	i.err = err
	i.block.valid = false
}

// openBlock opens data block n; it reports false if there is no such block.
func (i *Iter) openBlock(n int) bool {
	if n < 0 || n >= i.r.dataCount {
		i.block.valid = false
		return false
	}
	loc, err := i.r.locateBlock(n, i.fill, &i.memo, &i.Probe)
	if err != nil {
		i.fail(err)
		return false
	}
	return i.open(loc)
}

// settle turns a malformed entry into an error of the file.
func (i *Iter) settle(ok bool) bool {
	if i.block.err != nil {
		i.fail(i.r.blockError(i.loc, i.block.err))
		return false
	}
	return ok
}

// First moves to the first entry.
func (i *Iter) First() bool {
	i.err = nil
	return i.openBlock(0) && i.settle(i.block.first())
}

// Last moves to the last entry.
func (i *Iter) Last() bool {
	i.err = nil
	return i.openBlock(i.r.dataCount-1) && i.settle(i.block.last())
}

// seekBlock opens the only block that may hold user's entries, or the first of
// them. It reports false if user is behind the last block.
func (i *Iter) seekBlock(user []byte) bool {
	i.err = nil
	loc, ok, err := i.r.locate(user, i.fill, &i.memo, &i.Probe)
	if err != nil {
		i.fail(err)
		return false
	}
	if !ok {
		i.block.valid = false
		return false
	}
	return i.open(loc)
}

// SeekGE moves to the first entry at or behind k.
func (i *Iter) SeekGE(k base.InternalKey) bool {
	k = i.local(k)
	if !i.seekBlock(k.User) {
		return false
	}
	if i.settle(i.block.seekGE(k)) {
		return true
	}
	// The versions of a key may cross blocks: k can be behind all of this one.
	for i.err == nil && i.openBlock(i.loc.block+1) {
		if i.settle(i.block.seekGE(k)) {
			return true
		}
	}
	return false
}

// SeekLT moves to the last entry before k.
func (i *Iter) SeekLT(k base.InternalKey) bool {
	k = i.local(k)
	if !i.seekBlock(k.User) {
		return i.err == nil && i.Last()
	}
	for {
		// Versions of k.User that are before k may go on in the next block.
		more, err := i.endsWith(k.User)
		if err != nil {
			i.fail(err)
			return false
		}
		if i.settle(i.block.seekGE(k)) || i.err != nil || !more {
			break
		}
		if !i.openBlock(i.loc.block + 1) {
			return false
		}
	}
	if i.err != nil {
		return false
	}
	if i.block.valid {
		return i.Prev()
	}
	return i.settle(i.block.last())
}

// endsWith reports whether the block's separator is user and there is a next block.
func (i *Iter) endsWith(user []byte) (bool, error) {
	if i.loc.block+1 == i.r.dataCount {
		return false, nil
	}
	var err error
	i.separator, err = i.r.appendSeparator(i.separator[:0], i.loc.block, i.fill, &i.memo, &i.Probe)
	return bytes.Equal(i.separator, user), err
}

// Next moves to the next entry. The iterator must be on an entry.
func (i *Iter) Next() bool {
	if i.block.next() {
		return true
	}
	if !i.settle(true) {
		return false
	}
	for i.openBlock(i.loc.block + 1) {
		if i.settle(i.block.first()) || i.err != nil {
			return i.err == nil
		}
	}
	return false
}

// Prev moves to the entry before. The iterator must be on an entry.
func (i *Iter) Prev() bool {
	if i.block.prev() {
		return true
	}
	if !i.settle(true) {
		return false
	}
	for i.openBlock(i.loc.block - 1) {
		if i.settle(i.block.last()) || i.err != nil {
			return i.err == nil
		}
	}
	return false
}

// readAheadBytes is one read of a sequential pass: large enough that the cost of
// a system call vanishes, small enough that a merge of many files stays small.
const readAheadBytes = 128 << 10

// readAhead serves consecutive small reads out of large ones.
type readAhead struct {
	file  io.ReaderAt
	limit int64 // nothing behind this offset is read ahead
	buf   []byte
	start int64 // file offset of buf
}

// ReadAt implements io.ReaderAt.
func (a *readAhead) ReadAt(b []byte, offset int64) (int, error) {
	end := offset + int64(len(b))
	if offset < a.start || end > a.start+int64(len(a.buf)) {
		if len(b) >= readAheadBytes || end > a.limit {
			return a.file.ReadAt(b, offset)
		}
		n := min(readAheadBytes, a.limit-offset)
		if int64(cap(a.buf)) < n {
			a.buf = make([]byte, readAheadBytes)
		}
		a.buf, a.start = a.buf[:n], offset
		if err := readFull(a.file, a.buf, offset); err != nil {
			a.buf = a.buf[:0]
			return 0, err
		}
	}
	return copy(b, a.buf[offset-a.start:]), nil
}

// An Entry is a live key with its value.
type Entry struct{ Key, Value []byte }

// All returns an iterator over the file's live keys in ascending order: newest
// versions, without deleted keys and values that have expired by time.Now. Slices
// are valid for one step. An error ends the sequence and comes with a zero Entry;
// it matches ErrMergeOperand at a key whose newest version is a merge operand.
func (r *Reader) All() func(yield func(Entry, error) bool) {
	return func(yield func(Entry, error) bool) {
		it := r.NewIter(IterOptions{Sequential: true})
		var last []byte
		first := true
		for ok := it.First(); ok; ok = it.Next() {
			k := it.Key()
			if !first && bytes.Equal(last, k.User) {
				continue
			}
			first = false
			last = append(last[:0], k.User...)
			if r.tombstones.Cover(k.User, base.MaxSeqNum) > k.SeqNum() {
				continue
			}
			value, live, err := alone(k.Kind(), it.Value())
			if err != nil {
				yield(Entry{}, fmt.Errorf("%w: %s, key %q", err, r.name, k.User))
				return
			}
			if live && !yield(Entry{Key: k.User, Value: value}, nil) {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(Entry{}, err)
		}
	}
}
