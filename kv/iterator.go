package kv

import (
	"bytes"
	"errors"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// An Iterator walks the live keys of a store in order, both ways, as of the
// moment it was made. It starts on no entry: First, Last or a seek puts it on
// one. Every move reports whether it is on an entry; after false, Error tells an
// end from a failure. It is not safe for concurrent use. Close it: it keeps files
// on disk and memory in use.
type Iterator struct {
	db     *DB
	state  *readState
	stripe int
	at     base.SeqNum
	lower  []byte
	upper  []byte
	input  *iterator.Merging
	parts  *iterParts
	tombs  []*rangedel.Set
	own    *txView // nil: not a transaction's
	plain  bool    // neither range tombstones nor own writes

	key   []byte
	value []byte
	// Going forward, the input is on the entry itself, or past it if ahead is set.
	// Going backward, it is on the last entry before all versions of key, or on none.
	backward bool
	ahead    bool
	operands [][]byte // of key, with the value under them; see iterator_versions.go
	older    []byte   // the value, going backward
	valid    bool
	err      error
	closed   bool
}

// NewIter returns an iterator over the present. It sees nothing that is written
// later.
func (d *DB) NewIter(o *IterOptions) (*Iterator, error) { return d.newIter(o, base.MaxSeqNum, nil) }

// newIter returns an iterator as of at, or of the present if at is MaxSeqNum, and
// of a transaction's own writes if own is not nil.
func (d *DB) newIter(o *IterOptions, at base.SeqNum, own *txView) (*Iterator, error) {
	n := int(d.counters.iterators.Add(1)) & (numStripes - 1)
	s := d.acquire(n)
	if s == nil {
		return nil, ErrClosed
	}
	if at == base.MaxSeqNum {
		at = min(d.seq(), s.limit) // after acquire, as in get
	}
	return d.iterOn(s, n, at, o, own)
}

// iterOn returns an iterator on a state that the caller has acquired on stripe n.
// It gives the state back.
func (d *DB) iterOn(s *readState, n int, at base.SeqNum, o *IterOptions, own *txView) (*Iterator, error) {
	i := &Iterator{db: d, state: s, stripe: n, at: at, own: own, parts: iterPartsPool.Get().(*iterParts)}
	i.key = i.parts.key
	if o != nil {
		i.lower, i.upper = bytes.Clone(o.LowerBound), bytes.Clone(o.UpperBound)
	}
	if err := i.init(); err != nil {
		i.parts.giveBack(i.key)
		d.release(s, n)
		return nil, err
	}
	d.iterators.Add(i, d.opts.TraceOpens, 2)
	return i, nil
}

// init makes the sequences of all places that may hold keys.
func (i *Iterator) init() error {
	s, d, p := i.state, i.db, i.parts
	if i.own != nil && i.own.index != nil {
		p.AddMemtable(i.own.index)
	}
	i.memtable(s.mem)
	for _, m := range s.imms {
		i.memtable(m)
	}
	prefix := iterator.PrefixWithin(d.opts.Prefix, i.lower, i.upper, &d.counters.prefix)
	if err := p.AddVersion(s.version, &d.tables, i.lower, i.upper, prefix); err != nil {
		return err
	}
	t, err := s.version.Tombstones(&d.tables)
	if err == nil && !t.Empty() {
		i.tombs = append(i.tombs, t)
	}
	i.plain = len(i.tombs) == 0 && i.own == nil
	i.input = &p.Merging
	return err
}

func (i *Iterator) memtable(m *memTable) {
	i.parts.AddMemtable(m)
	if t := m.Tombstones(); !t.Empty() {
		i.tombs = append(i.tombs, t)
	}
}

// iterParts are the sequences and buffers of an Iterator, which are used again. The Iterator
// itself is not: one that was closed must stay closed for whoever still has it.
type iterParts struct {
	iterator.Sources
	key   []byte
	newer []byte // of passNewer
	past  []byte // of newestFirst
}

var iterPartsPool = sync.Pool{New: func() any { return new(iterParts) }}

// giveBack returns the parts to the pool, with the buffer of the iterator's key.
func (p *iterParts) giveBack(key []byte) {
	p.Release()
	p.key = key
	for _, b := range []*[]byte{&p.key, &p.newer, &p.past} {
		if cap(*b) > maxRetainedScratch {
			*b = nil
		}
		*b = (*b)[:0]
	}
	iterPartsPool.Put(p)
}

// Valid reports whether the iterator is on an entry.
func (i *Iterator) Valid() bool { return i.valid }

// Key returns the key, valid until the next move. The caller must not change it.
func (i *Iterator) Key() []byte {
	if !i.valid {
		return nil
	}
	return i.key
}

// Value returns the value, valid until the next move. The caller must not change
// it.
func (i *Iterator) Value() []byte {
	if !i.valid {
		return nil
	}
	return i.value
}

// Error returns what ended the iteration early: a damaged file, a failed read, or
// ErrClosed. Nil at an end.
func (i *Iterator) Error() error { return i.err }

// Close gives the iterator back. A second Close does nothing.
func (i *Iterator) Close() error {
	if i.closed {
		return nil
	}
	i.closed, i.valid = true, false
	i.own.close()
	i.db.iterators.Remove(i, i.db.opts.TraceOpens)
	i.db.release(i.state, i.stripe)
	err := i.err
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrTxDone) {
		err = nil
	}
	i.parts.giveBack(i.key)
	i.state, i.input, i.parts, i.key, i.value = nil, nil, nil, nil, nil
	return err
}

// usable clears the last error, and reports whether iterator and store are open.
func (i *Iterator) usable() bool {
	i.valid, i.err = false, nil
	if i.closed || i.db.closed.Load() {
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
	if !i.usable() {
		return false
	}
	i.own.from(i.lower)
	if i.lower != nil {
		return i.own.ahead(i, i.forward(i.input.SeekGE(base.SearchKey(i.lower, base.MaxSeqNum)), false))
	}
	return i.own.ahead(i, i.forward(i.input.First(), false))
}

// Last moves to the last entry within the bounds.
func (i *Iterator) Last() bool {
	if !i.usable() {
		return false
	}
	i.own.before(i.upper, i.upper == nil)
	if i.upper != nil {
		return i.own.behind(i, i.back(i.input.SeekLT(base.SearchKey(i.upper, base.MaxSeqNum))))
	}
	return i.own.behind(i, i.back(i.input.Last()))
}

// SeekGE moves to the first entry at or after key, within the bounds.
func (i *Iterator) SeekGE(key []byte) bool {
	if !i.usable() {
		return false
	}
	if i.lower != nil && bytes.Compare(key, i.lower) < 0 {
		key = i.lower
	}
	i.own.from(key)
	return i.own.ahead(i, i.forward(i.input.SeekGE(base.SearchKey(key, base.MaxSeqNum)), false))
}

// SeekLT moves to the last entry before key, within the bounds.
func (i *Iterator) SeekLT(key []byte) bool {
	if !i.usable() {
		return false
	}
	if i.upper != nil && bytes.Compare(key, i.upper) > 0 {
		key = i.upper
	}
	i.own.before(key, false)
	return i.own.behind(i, i.back(i.input.SeekLT(base.SearchKey(key, base.MaxSeqNum))))
}

// Next moves to the next entry. It does nothing if the iterator is on none.
func (i *Iterator) Next() bool {
	if !i.valid || !i.usable() {
		return false
	}
	if i.backward {
		return i.own.ahead(i, i.forward(i.input.SeekGE(base.SearchKey(i.key, base.MaxSeqNum)), true))
	}
	if i.ahead {
		return i.own.ahead(i, i.forward(i.input.Valid(), true))
	}
	if l := i.input.OnlyRun(); l != nil && i.plain {
		return i.nextIn(l)
	}
	return i.own.ahead(i, i.forward(i.input.Next(), true))
}

// nextIn is Next where one sorted run is all that is left, as in a settled store, and
// nothing but entries decides what is live: most steps are a step in a block and a
// comparison of the key with the one before, without an indirect call.
func (i *Iterator) nextIn(l *iterator.Run) bool {
	if !l.Next() {
		return i.forward(i.input.Moved(false), true)
	}
	k := l.Key()
	i.input.SetKey(k)
	if k.Kind() != base.KindSet || k.SeqNum() > i.at || bytes.Equal(k.User, i.key) || i.upper != nil &&
		bytes.Compare(k.User, i.upper) >= 0 {
		return i.forward(true, true)
	}
	i.key = append(i.key[:0], k.User...)
	i.value, i.valid = l.Value(), true
	return true
}

// Prev moves to the entry before. It does nothing if the iterator is on none.
func (i *Iterator) Prev() bool {
	if !i.valid || !i.usable() {
		return false
	}
	if i.backward {
		return i.own.behind(i, i.back(i.input.Valid()))
	}
	return i.own.behind(i, i.back(i.input.SeekLT(base.SearchKey(i.key, base.MaxSeqNum))))
}
