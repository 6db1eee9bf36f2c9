package sstable

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
)

// An Iter walks a file's point entries in internal-key order: every version and
// every tombstone. All moves report whether the iterator is on an entry; after false, Error
// tells whether that is the end. An Iter is not safe for concurrent use.
type Iter struct {
	r          *Reader
	lift       base.Trailer // what Reader.lift adds
	sequential bool
	keysOnly   bool
	block      blockIter
	loc        location
	memo       leafMemo
	err        error

	edges edges

	run    blockRun
	ahead  readAhead
	stride stride
	far    *Far // nil: reads of files are no requests, or a part at a time is enough

	data      []byte // buffer of load: the block
	raw       []byte // buffer of stored
	seek      []byte // buffer of local
	separator []byte // buffer of endsWith and lastBlockOf

	// Probe counts what the iterator read.
	Probe Probe
}

// IterOptions say what an iterator is for.
type IterOptions struct {
	Sequential bool // as in package siftkv/sstable

	// KeysOnly leaves out what only costs a copy: the iterator's values have their lengths, and those
	// of base.KindSetTTL their expiry; their other bytes may be anything.
	KeysOnly bool

	// Bounds say that nothing is wanted outside; nil: there are none. Where the index tells that a
	// block and all that follow are past a bound, the iterator ends before it reads them; entries
	// of blocks that it reads may be outside. They must not change.
	Bounds *Bounds
}

// Bounds are those of keys of [Lower, Upper); nil is no bound.
type Bounds struct{ Lower, Upper []byte }

// NewIter returns an iterator that is on no entry.
func (r *Reader) NewIter(o IterOptions) *Iter {
	i := &Iter{}
	i.Init(r, o)
	return i
}

// Init makes i an iterator over r, keeping i's buffers.
func (i *Iter) Init(r *Reader, o IterOptions) {
	// A pass that continues in the next table keeps its prefetch size, and what it has filled of the cache.
	run, size := i.run, i.ahead.size
	if i.r != nil { // not after Release
		i.clear()
	}
	i.run = blockRun{blocks: run.blocks, bytes: run.bytes}
	i.ahead.size = size
	i.r, i.lift, i.sequential, i.keysOnly = r, r.lift(0), o.Sequential, o.KeysOnly
	i.edges.bounds = o.Bounds
	if r.part > 0 {
		i.initFar(run.backward)
	}
	i.ahead.file, i.ahead.limit, i.ahead.pace = nowFirst{r}, int64(r.props.DataBytes), paceOf(r.part)
	if o.Sequential {
		i.ahead.size = i.ahead.pace.most
	}
	i.memo.ahead.init(r)
}

// Release makes i an iterator over nothing, which refers to no reader and keeps its buffers for the next Init.
func (i *Iter) Release() {
	if cap(i.data)+cap(i.raw) > keptBuffer {
		i.data, i.raw = nil, nil
	}
	if cap(i.ahead.buf) > filePace.foreseen {
		i.ahead.buf = nil
	}
	i.endStride()
	if i.far != nil {
		i.far.parts.drop(i.far.Pass)
		i.far.parts = parts{}
	}
	i.clear()
}

// Kept returns how many bytes i's buffers have.
func (i *Iter) Kept() int {
	return cap(i.data) + cap(i.raw) + cap(i.ahead.buf) + cap(i.memo.ahead.pieces.buf) + cap(i.seek) +
		cap(i.separator) + cap(i.block.user)
}

// clear makes i an iterator over nothing that has its buffers.
func (i *Iter) clear() {
	*i = Iter{
		data: i.data[:0], raw: i.raw[:0], seek: i.seek[:0], separator: i.separator[:0],
		ahead:  readAhead{buf: i.ahead.buf[:0]},
		stride: stride{mean: i.stride.mean, last: i.stride.last, pages: i.stride.pages},
		far:    i.far,
		block:  blockIter{user: i.block.user},
	}
}

// keptBuffer bounds the block buffers that Release keeps, in bytes.
const keptBuffer = 256 << 10

// Valid reports whether the iterator is on an entry.
func (i *Iter) Valid() bool { return i.block.valid && i.err == nil }

// Key returns the entry's key, valid until the next move.
func (i *Iter) Key() base.InternalKey {
	return base.InternalKey{User: i.block.user[:i.block.keyLen:i.block.keyLen], Trailer: i.block.trailer | i.lift}
}

// User returns the entry's user key, valid until the next move.
func (i *Iter) User() []byte { return i.block.user[:i.block.keyLen:i.block.keyLen] }

// Value returns the entry's value, valid until the next move; for a blob value, the entry's content
// (blob.HandleOf). It must not be changed.
func (i *Iter) Value() []byte { return i.block.value() }

// Error returns what ended the iteration early, if anything did.
func (i *Iter) Error() error { return i.err }

// open puts the block iterator into the block at loc, to look for key if that is not nil.
func (i *Iter) open(loc location, key []byte) bool {
	i.loc = loc
	data, err := i.load(loc, key)
	if err != nil {
		return i.fail(err)
	}
	i.block.reset(viewBlock(data))
	return true
}

// fail ends the iteration with an error, or at an end if it is nil.
func (i *Iter) fail(err error) bool {
	i.err, i.block.valid = err, false
	return false
}

// openBlock opens data block n; it reports false if there is no such block.
func (i *Iter) openBlock(n int) bool {
	if n < 0 || n >= i.r.dataCount {
		return i.fail(nil)
	}
	loc, err := i.r.locateBlock(n, !i.sequential, &i.memo, &i.Probe)
	if err != nil {
		return i.fail(err)
	}
	return i.open(loc, nil)
}

// settle turns a malformed entry into an error of the file.
func (i *Iter) settle(ok bool) bool {
	if i.block.err != nil {
		return i.fail(i.r.blockError(i.loc, i.block.err))
	}
	return ok
}

// First moves to the first entry.
func (i *Iter) First() bool {
	i.err, i.stride.pages = nil, false
	return i.openBlock(0) && i.settle(i.block.first())
}

// Last moves to the last entry.
func (i *Iter) Last() bool {
	i.err, i.stride.pages = nil, false
	return i.openBlock(i.r.dataCount-1) && i.settle(i.block.last())
}

// seekBlock opens the only block that may hold user's entries, or the first of
// them. It reports false if user is after the last block.
func (i *Iter) seekBlock(user []byte) bool {
	i.err = nil
	loc, ok, err := i.r.locate(user, !i.sequential, &i.memo, &i.Probe)
	if err != nil || !ok {
		return i.fail(err)
	}
	i.stride.pages = i.stride.last == i.r.slotKey(loc.block)
	return i.open(loc, user)
}

// SeekGE moves to the first entry at or after k.
func (i *Iter) SeekGE(k base.InternalKey) bool {
	k = i.local(k)
	i.endStride()
	if !i.seekBlock(k.User) {
		return false
	}
	if i.settle(i.block.seekGE(k)) {
		i.stride.start(i.block.offset, len(i.block.b.entries))
		return true
	}
	return i.err == nil && i.pastBlock(k) // versions of a key may cross blocks
}

// SeekLT moves to the last entry before k.
func (i *Iter) SeekLT(k base.InternalKey) bool {
	k = i.local(k)
	i.endStride()
	if !i.seekBlock(k.User) {
		return i.err == nil && i.Last()
	}
	if !i.settle(i.block.seekGE(k)) && i.err == nil {
		// Versions of k.User that are before k may go on in the next block.
		more, err := i.endsWith(k.User)
		if err != nil {
			return i.fail(err)
		}
		if more && !i.atEdge(1) && !i.pastBlock(k) && i.err == nil {
			return i.Last()
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
	i.separator, err = i.r.appendSeparator(i.separator[:0], i.loc.block, !i.sequential, &i.memo, &i.Probe)
	return bytes.Equal(i.separator, user), err
}

// Next moves to the next entry. The iterator must be on an entry.
func (i *Iter) Next() bool {
	return i.block.next() || i.nextBlock()
}

func (i *Iter) nextBlock() bool {
	if !i.settle(true) {
		return false
	}
	if !i.atEdge(1) {
		i.stride.blocks++
	}
	return i.across(1, (*blockIter).first)
}

// Step is Next within the block. After false, which the end of the block is too, Key is still
// that of the entry before, and Next goes on.
func (i *Iter) Step() bool { return i.block.next() }

// Again reports, after a Step that has found an entry, whether its user key is that of the entry before.
func (i *Iter) Again() bool { return i.block.again }

// Prev moves to the entry before. The iterator must be on an entry.
func (i *Iter) Prev() bool {
	return i.block.prev() || i.settle(true) && i.across(-1, (*blockIter).last)
}

// across goes on to the next block, or the one before, in which enter finds an entry.
func (i *Iter) across(step int, enter func(b *blockIter) bool) bool {
	for !i.atEdge(step) && i.openBlock(i.loc.block+step) {
		if i.settle(enter(&i.block)) || i.err != nil {
			return i.err == nil
		}
	}
	if i.err == nil {
		i.block.valid = false
	}
	return false
}
