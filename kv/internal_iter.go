package kv

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// An internalIter walks internal keys in order. Moves report whether it is on an
// entry. Keys are valid until the next move. Values are too, but those of memtables
// and of sequential iterators stay as long as the memtable or table is referred to.
type internalIter interface {
	First() bool
	Last() bool
	SeekGE(k base.InternalKey) bool
	SeekLT(k base.InternalKey) bool
	Next() bool
	Prev() bool
	Valid() bool
	Key() base.InternalKey
	Value() []byte
	Error() error
}

// memIter is a memtable's iterator, which cannot fail.
type memIter struct{ memtable.Iter }

func (*memIter) Error() error { return nil }

func newMemIter(m *memTable) *memIter {
	i := &memIter{}
	i.Init(m)
	return i
}

// A runIter walks the tables of one sorted run, one after the other. Tables
// whose filters say that they have nothing of its prefix are passed over.
type runIter struct {
	d      *DB
	run    *version.Run
	opts   sstable.IterOptions
	prefix *scanPrefix // nil: every table may have something
	at     int         // position of the table, -1 to len(run.tables)
	it     sstable.Iter
	open   bool // it is the table's
	err    error
}

func newRunIter(d *DB, r *version.Run, prefix *scanPrefix, o sstable.IterOptions) *runIter {
	return &runIter{d: d, run: r, opts: o, prefix: prefix, at: -1}
}

// reset puts l before the first table of a run. The buffers of its table's iterator
// are kept.
func (l *runIter) reset(d *DB, r *version.Run, prefix *scanPrefix) {
	l.d, l.run, l.prefix, l.at = d, r, prefix, -1
	l.opts, l.open, l.err = sstable.IterOptions{}, false, nil
}

// release makes l refer to nothing.
func (l *runIter) release() {
	l.reset(nil, nil, nil)
	l.it.Release()
}

// use moves to the table at position n. It reports whether its iterator is open:
// not behind the ends, nor for a table that is passed over.
func (l *runIter) use(n int) bool {
	if l.open && l.at == n {
		return true
	}
	l.open = false
	l.at = min(max(n, -1), len(l.run.Tables))
	if l.at != n || n < 0 || n == len(l.run.Tables) {
		return false
	}
	r, err := l.run.Tables[n].Open(&l.d.tables)
	if err != nil {
		l.err = err
		return false
	}
	if l.prefix.rulesOut(l.d, r) {
		return false
	}
	l.open = true
	l.it.Init(r, l.opts)
	return true
}

// forward goes on to the first entry of the following tables until there is one.
func (l *runIter) forward(ok bool) bool {
	for !ok && l.healthy() && l.at < len(l.run.Tables) {
		ok = l.use(l.at+1) && l.it.First()
	}
	return ok
}

// backward goes back to the last entry of the tables before until there is one.
func (l *runIter) backward(ok bool) bool {
	for !ok && l.healthy() && l.at >= 0 {
		ok = l.use(l.at-1) && l.it.Last()
	}
	return ok
}

func (l *runIter) healthy() bool {
	if l.err == nil && l.open {
		l.err = l.it.Error()
	}
	return l.err == nil
}

func (l *runIter) First() bool {
	l.err = nil
	return l.forward(l.use(0) && l.it.First())
}

func (l *runIter) Last() bool {
	l.err = nil
	return l.backward(l.use(len(l.run.Tables)-1) && l.it.Last())
}

func (l *runIter) SeekGE(k base.InternalKey) bool {
	l.err = nil
	return l.forward(l.use(l.run.Find(k.User)) && l.it.SeekGE(k))
}

func (l *runIter) SeekLT(k base.InternalKey) bool {
	l.err = nil
	n := l.run.Find(k.User)
	if n == len(l.run.Tables) {
		return l.Last()
	}
	return l.backward(l.use(n) && l.it.SeekLT(k))
}

func (l *runIter) Next() bool            { return l.it.Next() || l.forward(false) }
func (l *runIter) Prev() bool            { return l.backward(l.it.Prev()) }
func (l *runIter) Valid() bool           { return l.open && l.it.Valid() }
func (l *runIter) Key() base.InternalKey { return l.it.Key() }
func (l *runIter) Value() []byte         { return l.it.Value() }

func (l *runIter) Error() error {
	l.healthy()
	return l.err
}
