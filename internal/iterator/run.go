package iterator

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// A Run walks the tables of one sorted run, one after the other. Tables
// whose filters say that they have nothing of its prefix are passed over.
type Run struct {
	run    *version.Run
	cache  *version.TableCache
	opts   sstable.IterOptions
	prefix *Prefix // nil: every table may have something
	lo, hi []byte  // no table without keys of [lo, hi) is come to by a step; nil: no bound
	at     int     // position of the table, -1 to run.Len()
	it     sstable.Iter
	open   bool // it is the table's
	err    error
	far    sstable.Far // of it, where reads of tables are requests
}

// NewRun returns an iterator over a run.
func NewRun(r *version.Run, c *version.TableCache, o sstable.IterOptions) *Run {
	return &Run{run: r, cache: c, opts: o, at: -1}
}

// reset puts l before the first table of a run, of which its user wants no keys but those of
// [lo, hi). The buffers of its table's iterator are kept.
func (l *Run) reset(r *version.Run, c *version.TableCache, p *Prefix, lo, hi []byte) {
	l.run, l.cache, l.prefix, l.at = r, c, p, -1
	l.lo, l.hi = lo, hi
	l.opts, l.open, l.err = sstable.IterOptions{}, false, nil
}

// release makes l refer to nothing.
func (l *Run) release() {
	l.reset(nil, nil, nil, nil, nil)
	l.it.Release()
	l.it.Share(nil)
	l.far.Pass, l.far.Lower, l.far.Upper = nil, nil, nil
}

// use moves to the table at position n. It reports whether its iterator is open:
// not past the ends, nor for a table that is passed over.
func (l *Run) use(n int) bool {
	if l.open && l.at == n {
		return true
	}
	l.open = false
	l.at = min(max(n, -1), l.run.Len())
	if l.at != n || n < 0 || n == l.run.Len() {
		return false
	}
	r, err := l.run.At(n).Open(l.cache)
	if err != nil {
		l.err = err
		return false
	}
	if l.prefix.rulesOut(r) {
		return false
	}
	l.open = true
	l.it.Init(r, l.opts)
	return true
}

// forward goes on to the first entry of the following tables until there is one, or the bound:
// where filters deny a prefix, all tables of the run would be opened to be passed over.
func (l *Run) forward(ok bool) bool {
	for !ok && l.healthy() && l.at < l.run.Len() && !l.behind(l.at+1) {
		ok = l.use(l.at+1) && l.it.First()
	}
	return ok
}

// behind reports whether the table at position n and those after it are past the bound, and
// leaves the run if so.
func (l *Run) behind(n int) bool {
	if l.hi == nil || n >= l.run.Len() || bytes.Compare(l.run.At(n).Smallest, l.hi) < 0 {
		return false
	}
	l.at, l.open = l.run.Len(), false
	return true
}

// backward goes back to the last entry of the tables before until there is one, or the bound.
func (l *Run) backward(ok bool) bool {
	for !ok && l.healthy() && l.at >= 0 && !l.ahead(l.at-1) {
		ok = l.use(l.at-1) && l.it.Last()
	}
	return ok
}

// ahead is behind the other way round.
func (l *Run) ahead(n int) bool {
	if l.lo == nil || n < 0 || !l.run.At(n).Before(l.lo) {
		return false
	}
	l.at, l.open = -1, false
	return true
}

func (l *Run) healthy() bool {
	if l.err == nil && l.open {
		l.err = l.it.Error()
	}
	return l.err == nil
}

// First moves to the first entry.
func (l *Run) First() bool {
	l.err = nil
	return l.forward(l.use(0) && l.it.First())
}

// Last moves to the last entry.
func (l *Run) Last() bool {
	l.err = nil
	return l.backward(l.use(l.run.Len()-1) && l.it.Last())
}

// SeekGE moves to the first entry at or after k.
func (l *Run) SeekGE(k base.InternalKey) bool {
	l.err = nil
	n, _ := l.run.Find(k.User)
	return !l.behind(n) && l.forward(l.use(n) && l.it.SeekGE(k))
}

// SeekLT moves to the last entry before k.
func (l *Run) SeekLT(k base.InternalKey) bool {
	l.err = nil
	n, t := l.run.Find(k.User)
	if t == nil {
		return l.Last()
	}
	return l.backward(l.use(n) && l.it.SeekLT(k))
}

// Next moves to the next entry.
func (l *Run) Next() bool { return l.it.Next() || l.forward(false) }

// Prev moves to the entry before.
func (l *Run) Prev() bool { return l.backward(l.it.Prev()) }

// Valid reports whether the iterator is on an entry.
func (l *Run) Valid() bool { return l.open && l.it.Valid() }

// Key returns the key.
func (l *Run) Key() base.InternalKey { return l.it.Key() }

// Value returns the value.
func (l *Run) Value() []byte { return l.it.Value() }

// Error returns what ended the iteration early.
func (l *Run) Error() error {
	l.healthy()
	return l.err
}

func (l *Run) skipForward(end []byte, seq base.SeqNum) (on, skipped bool) {
	t := l.run.At(l.at)
	if t.LargestSeq >= seq {
		return false, false
	}
	inside := end != nil && !t.Before(end)
	return l.forward(inside && l.it.SeekGE(base.SearchKey(end, base.MaxSeqNum))), true
}

func (l *Run) skipBackward(start []byte, seq base.SeqNum) (on, skipped bool) {
	t := l.run.At(l.at)
	if t.LargestSeq >= seq {
		return false, false
	}
	inside := bytes.Compare(t.Smallest, start) < 0
	return l.backward(inside && l.it.SeekLT(base.SearchKey(start, base.MaxSeqNum))), true
}
