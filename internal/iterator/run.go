package iterator

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// A Run walks the tables of one sorted run, one after the other. It skips tables if their filters say that they have
// none of the wanted keys.
type Run struct {
	run    *version.Run
	cache  *tablecache.Cache
	opts   sstable.IterOptions
	lo, hi []byte          // the user wants no keys but those of [lo, hi); nil: no bound
	prefix *Prefix         // nil: every table may have something
	at     int             // position of the table, -1 to run.Len()
	reader *sstable.Reader // of the table that it is open for
	it     sstable.Iter
	open   bool // it is the table's
	off    bool // it is on no entry, whatever it says: what is wanted is not in its table
	asked  bool // the table's range filter has said maybe
	err    error
	far    sstable.Far // of it, where reads of tables are requests
	scans  counters.Scan
}

// NewRun returns an iterator over a run.
func NewRun(r *version.Run, c *tablecache.Cache, o sstable.IterOptions) *Run {
	return &Run{run: r, cache: c, opts: o, at: -1}
}

// reset puts l before the first table of a run, of which its user wants no keys but those within the bounds. The
// buffers of its table's iterator are kept.
func (l *Run) reset(r *version.Run, c *tablecache.Cache, p *Prefix, o sstable.IterOptions) {
	l.run, l.cache, l.prefix, l.opts, l.at = r, c, p, o, -1
	if l.lo, l.hi = nil, nil; o.Bounds != nil {
		l.lo, l.hi = o.Bounds.Lower, o.Bounds.Upper
	}
	l.reader, l.open, l.off, l.err, l.scans = nil, false, false, nil, counters.Scan{}
}

// release makes l refer to nothing.
func (l *Run) release() {
	l.reset(nil, nil, nil, sstable.IterOptions{})
	l.it.Release()
	l.it.Share(nil)
	l.far.Pass, l.far.Lower, l.far.Upper = nil, nil, nil
}

// use moves to the table at position n, for keys of [lo, hi); with neither bound, the wanted keys are unknown. It
// reports whether the table's iterator is open, and may have some. A table that a filter denies is not read, and stays
// out of the merge until the next seek.
func (l *Run) use(n int, lo, hi []byte) bool {
	ready := l.open && l.at == n
	l.off = true
	if !ready {
		l.open, l.at = false, n
		r, err := l.run.At(n).Open(l.cache)
		if err != nil {
			l.err = err
			return false
		}
		l.reader = r
		if l.prefix.rulesOut(r) {
			l.scans.DeniedByPrefix++
			l.tell(true)
			return false
		}
	}
	// Without a filter the file's own bounds are not checked: reading them is a cache miss.
	if l.asked = false; (lo != nil || hi != nil) && l.reader.HasRangeFilter() && !l.admits(lo, hi) {
		return false
	}
	if !ready {
		l.countBlocks()
		l.it.Init(l.reader, l.opts)
		l.open = true
	}
	l.off = false
	return true
}

// admits reports whether the table may have keys of [lo, hi).
func (l *Run) admits(lo, hi []byte) (may bool) {
	if may, l.asked = l.reader.AskRange(lo, hi); !may && l.asked {
		l.scans.DeniedByRange++
		l.tell(true)
	}
	return may
}

// forward moves to the first entry of a following table, unless the bound comes first. Without the bound, it would open
// all tables of the run to skip them if filters deny what is wanted.
func (l *Run) forward(ok bool) bool {
	for !ok && l.healthy() && l.at+1 < l.run.Len() && !l.behind(l.at+1) {
		ok = l.use(l.at+1, nil, l.hi) && l.found(l.it.First(), false)
	}
	l.off = !ok
	return ok
}

// behind reports whether the table at position n, and so those after it, are past the upper bound.
func (l *Run) behind(n int) bool {
	return l.hi != nil && bytes.Compare(l.run.At(n).Smallest, l.hi) >= 0
}

// backward goes back to the last entry of the tables before until there is one, or the bound.
func (l *Run) backward(ok bool) bool {
	for !ok && l.healthy() && l.at > 0 && !l.ahead(l.at-1) {
		ok = l.use(l.at-1, l.lo, nil) && l.found(l.it.Last(), true)
	}
	l.off = !ok
	return ok
}

// ahead reports whether the table at position n, and so those before it, are before the lower bound.
func (l *Run) ahead(n int) bool { return l.lo != nil && l.run.At(n).Before(l.lo) }

// leave says that there is nothing in the run of what is wanted. It returns false.
func (l *Run) leave() bool {
	l.off = true
	return false
}

func (l *Run) healthy() bool {
	if l.err == nil && l.open && !l.off {
		l.err = l.it.Error()
	}
	return l.err == nil
}

// First moves to the first entry.
func (l *Run) First() bool {
	l.err = nil
	if l.run.Len() == 0 || l.behind(0) {
		return l.leave()
	}
	return l.forward(l.use(0, nil, l.hi) && l.found(l.it.First(), false))
}

// Last moves to the last entry.
func (l *Run) Last() bool {
	l.err = nil
	n := l.run.Len() - 1
	if n < 0 || l.ahead(n) {
		return l.leave()
	}
	return l.backward(l.use(n, l.lo, nil) && l.found(l.it.Last(), true))
}

// SeekGE moves to the first entry at or after k.
func (l *Run) SeekGE(k base.InternalKey) bool {
	l.err = nil
	n, t := l.run.Find(k.User)
	if t == nil || l.behind(n) {
		return l.leave()
	}
	lo, hi := k.User, l.hi
	if hi == nil {
		lo = nil
	}
	return l.forward(l.use(n, lo, hi) && l.found(l.it.SeekGE(k), false))
}

// SeekLT moves to the last entry before k.
func (l *Run) SeekLT(k base.InternalKey) bool {
	l.err = nil
	n, t := l.run.Find(k.User)
	if t == nil {
		return l.Last()
	}
	lo, hi := l.lo, k.User
	if lo == nil || k.SeqNum() != base.MaxSeqNum { // newer versions of the key are before k too
		hi = nil
	}
	return l.backward(l.use(n, lo, hi) && l.found(l.it.SeekLT(k), true))
}

// Next moves to the next entry.
func (l *Run) Next() bool { return l.it.Next() || l.forward(false) }

// Prev moves to the entry before.
func (l *Run) Prev() bool { return l.backward(l.it.Prev()) }

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
