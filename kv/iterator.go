package kv

import (
	"bytes"
	"errors"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/sstable"
)

// An Iterator walks the live keys of a store in order, both ways, as of the
// moment it was made. It starts on no entry: First, Last or a seek puts it on
// one. Every move reports whether it is on an entry; after false, Error tells an
// end from a failure. It is not safe for concurrent use. Close it: it keeps files
// on disk and memory in use.
type Iterator struct {
	c   *cursor // nil: closed
	err error   // of one that is closed
}

// A cursor is what an Iterator is while it is open. It is used again for others. The Iterator
// itself is not: one that was closed must stay closed for code that still has it.
type cursor struct {
	db     *DB
	state  *readState
	stripe int
	at     base.SeqNum
	lower  []byte
	upper  []byte
	input  *iterator.Merging
	parts  *iterParts
	own    *txView // nil: not a transaction's
	plain  bool    // neither range tombstones nor own writes

	keysOnly bool // no values are wanted

	// Going forward in a table, of which all entries up to the fence come before any others:
	// the table has the key and the value; see iterator_table.go.
	table *sstable.Iter // nil: elsewhere
	fence uint64

	key    []byte
	value  []byte
	size   int    // of the value, if keysOnly is set and it is in no table; -1: there are operands
	expiry uint64 // of the value; 0: none, or there are operands
	under  uint64 // if there are operands, the expiry of the value under them; 0: none

	returned uint64 // entries that it reached since the last seek: always counted, as that is cheap
	scanning bool   // parts.scan is of the moves since then
	turned   uint64 // what returned was when the direction changed since
	// Going forward, the input is on the entry itself, or past it if ahead says so.
	// Going backward, it is on the last entry before all versions of key, or on none.
	// In both directions it may have read on: see iterator_ahead.go.
	backward bool
	ahead    aheadness
	seeks    int         // since countScans
	apart    blob.Handle // of the value if it was not read yet; of file 0: it was
	operands [][]byte    // of key, with the value under them; see iterator_versions.go
	older    []byte      // the value, going backward
	unread   error       // going backward: why key has no value to show, as of the versions so far
	valid    bool
	err      error
}

// NewIter returns an iterator over the present. It sees nothing that is written
// later.
func (d *DB) NewIter(o *IterOptions) (*Iterator, error) { return d.present.iter(o, nil) }

// iterOn returns an iterator on a state that the caller has acquired on stripe n.
// The iterator releases the state.
func (d *DB) iterOn(s *readState, n int, at base.SeqNum, o *IterOptions, own *txView) *Iterator {
	i := cursors.Get().(*cursor)
	i.db, i.state, i.stripe, i.at, i.own = d, s, n, at, own
	begun := false
	defer func() {
		if !begun { // Options.Prefix panicked
			d.release(s, n)
		}
	}()
	if o != nil {
		i.bound(o)
		i.keysOnly = o.KeysOnly
	}
	i.init()
	begun = true
	it := &Iterator{c: i}
	d.iterators.Add(it, d.opts.TraceOpens, 2)
	return it
}

// init makes the iterators of all memtables and tables that may hold keys.
func (i *cursor) init() {
	s, d, p := i.state, i.db, i.parts
	p.tombs.Init(s.version, &d.tables, i.lower, i.upper, i.at)
	if i.own != nil && i.own.index != nil {
		p.AddMemtable(i.own.index)
	}
	i.memtable(s.mem)
	for _, m := range s.imms {
		i.memtable(m)
	}
	prefix := iterator.PrefixWithin(d.opts.Prefix, i.lower, i.upper, &d.counters.Prefix)
	p.Tables.KeysOnly = i.keysOnly
	p.AddVersion(s.version, &d.tables, i.lower, i.upper, prefix)
	i.plain = p.tombs.Empty() && i.own == nil
	i.input = &p.Merging
}

func (i *cursor) memtable(m *memTable) {
	i.parts.AddMemtable(m)
	i.parts.tombs.AddMemory(m.Tombstones())
}

// iterParts are the inputs and buffers of a cursor.
type iterParts struct {
	iterator.Sources
	tombs iterator.Tombstones
	scan  tracedScan
	key   []byte
	newer []byte // of passNewer
	past  []byte // of newestFirst
	older []byte
	apart []byte // a value out of a blob file
	on    readOn
	lower []byte
	upper []byte
}

var cursors = sync.Pool{New: func() any { return &cursor{parts: new(iterParts)} }}

// giveBack returns the cursor to the pool.
func (i *cursor) giveBack() {
	p := i.parts
	p.Release()
	p.tombs.Release()
	p.on.release()
	p.key, p.older = i.key, i.older
	for _, b := range []*[]byte{&p.key, &p.newer, &p.past, &p.older, &p.apart, &p.lower, &p.upper, &p.scan.start} {
		if cap(*b) > maxRetainedScratch {
			*b = nil
		}
		*b = (*b)[:0]
	}
	*i = cursor{parts: p, key: p.key, older: p.older}
	cursors.Put(i)
}

// Valid reports whether the iterator is on an entry.
func (i *Iterator) Valid() bool { return i.c != nil && i.c.valid }

// Key returns the key, valid until the next move. The caller must not change it.
func (i *Iterator) Key() []byte {
	c := i.c
	switch {
	case c == nil || !c.valid:
		return nil
	case c.table != nil:
		return c.table.User()
	}
	return c.key
}

// Value returns the value, valid until the next move; nil with IterOptions.KeysOnly. The caller
// must not change it.
func (i *Iterator) Value() []byte {
	c := i.c
	switch {
	case c == nil || !c.valid || c.keysOnly:
		return nil
	case c.table != nil:
		return c.table.Value()
	}
	return c.value
}

// Error returns what ended the iteration early: a damaged file, a failed read, or
// ErrClosed. Nil at an end. A *ValueError is the failure of one value: Next and Prev go on from its key.
func (i *Iterator) Error() error {
	if i.c == nil {
		return i.err
	}
	return i.c.err
}

// Close releases the iterator. A second Close does nothing.
func (i *Iterator) Close() error {
	c := i.c
	if c == nil {
		return nil
	}
	if c.scanning {
		c.endScan()
	}
	i.c, i.err = nil, c.err
	c.own.close()
	c.db.iterators.Remove(i, c.db.opts.TraceOpens)
	c.countScans()
	c.db.release(c.state, c.stripe)
	c.giveBack()
	if errors.Is(i.err, ErrClosed) || errors.Is(i.err, ErrTxDone) {
		return nil
	}
	return i.err
}

// usable clears the last error, and reports whether iterator and store are open.
func (i *Iterator) usable() bool {
	if i.c == nil {
		i.err = ErrClosed
		return false
	}
	return i.c.usable()
}

// seekable is usable for a move that seeks.
func (i *Iterator) seekable() bool {
	if !i.usable() {
		return false
	}
	if i.c.seeks++; i.c.seeks == seeksPerCount {
		i.c.countScans()
	}
	return true
}

func (i *cursor) usable() bool {
	i.valid, i.err, i.table, i.expiry = false, nil, nil, 0
	if i.db.closed.Load() {
		i.err = ErrClosed
		return false
	}
	if i.own != nil {
		i.err = i.own.usable()
	}
	return i.err == nil
}

// First moves to the first entry within the bounds.
func (i *Iterator) First() bool {
	if !i.begin(nil, false) {
		return false
	}
	c := i.c
	c.own.from(c.lower)
	if c.lower != nil {
		return c.came(c.own.ahead(c, c.forward(c.input.SeekGE(base.SearchKey(c.lower, base.MaxSeqNum)), false)))
	}
	return c.came(c.own.ahead(c, c.forward(c.input.First(), false)))
}

// Last moves to the last entry within the bounds.
func (i *Iterator) Last() bool {
	if !i.begin(nil, true) {
		return false
	}
	c := i.c
	c.own.before(c.upper, c.upper == nil)
	if c.upper != nil {
		return c.came(c.own.behind(c, c.back(c.input.SeekLT(base.SearchKey(c.upper, base.MaxSeqNum)))))
	}
	return c.came(c.own.behind(c, c.back(c.input.Last())))
}

// SeekGE moves to the first entry at or after key, within the bounds.
func (i *Iterator) SeekGE(key []byte) bool {
	if !i.begin(key, false) {
		return false
	}
	c := i.c
	if c.lower != nil && bytes.Compare(key, c.lower) < 0 {
		key = c.lower
	}
	c.own.from(key)
	return c.came(c.own.ahead(c, c.forward(c.input.SeekGE(base.SearchKey(key, base.MaxSeqNum)), false)))
}

// SeekLT moves to the last entry before key, within the bounds.
func (i *Iterator) SeekLT(key []byte) bool {
	if key == nil {
		key = []byte{} // not the bound
	}
	if !i.begin(key, true) {
		return false
	}
	c := i.c
	if c.upper != nil && bytes.Compare(key, c.upper) > 0 {
		key = c.upper
	}
	c.own.before(key, false)
	return c.came(c.own.behind(c, c.back(c.input.SeekLT(base.SearchKey(key, base.MaxSeqNum)))))
}

// Next moves to the next entry. If the iterator is on none, it does nothing, unless Error is a *ValueError: then it
// goes on from that key.
func (i *Iterator) Next() bool {
	c := i.c
	if c == nil || !c.valid && !c.passable() {
		return false
	}
	if c.table != nil && !c.db.closed.Load() {
		return c.nextInTable(c.table)
	}
	return c.next()
}

func (i *cursor) next() bool {
	if !i.usable() {
		return false
	}
	if i.backward {
		i.turned = i.returned
		return i.came(i.own.ahead(i, i.forward(i.input.SeekGE(base.SearchKey(i.key, base.MaxSeqNum)), true)))
	}
	if i.ahead != onEntry {
		if i.ahead == readAhead {
			return i.nextRead()
		}
		return i.came(i.own.ahead(i, i.forward(i.input.Valid(), true)))
	}
	return i.came(i.own.ahead(i, i.forward(i.input.Next(), true)))
}

// Prev moves to the entry before. If the iterator is on none, it does as Next.
func (i *Iterator) Prev() bool {
	c := i.c
	if c == nil || !c.valid && !c.passable() {
		return false
	}
	if c.table != nil {
		c.key = append(c.key[:0], c.table.User()...)
	}
	if !c.usable() {
		return false
	}
	if c.backward {
		if c.ahead == readAhead {
			return c.nextRead()
		}
		return c.came(c.own.behind(c, c.back(c.input.Valid())))
	}
	c.turned = c.returned
	return c.came(c.own.behind(c, c.back(c.input.SeekLT(base.SearchKey(c.key, base.MaxSeqNum)))))
}

// seeksPerCount is how many seeks of an iterator are counted together at the most.
const seeksPerCount = 128

// countScans adds what the iterator's inputs counted to the store's counters.
func (i *cursor) countScans() {
	i.seeks = 0
	levels := &i.db.counters.Stripes[i.stripe].Levels
	i.parts.Scans(func(level int, c *counters.Scan) { levels[level].Scans.Add(c) })
}
