package iterator

import (
	"bytes"
	"errors"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/sstable"
)

// If a read of a table is a request to another machine, sequences that need one to be positioned wait in parallel: a
// seek in seventeen files takes as long as in one. Those with their blocks in memory are positioned without a
// goroutine.

// rebuildFar is rebuild where reads are requests. Cold reports whether a run needs one for the move.
func (m *Merging) rebuildFar(reverse bool, move func(Iter) bool, cold func(*Run) bool) bool {
	m.pass.Begin(reverse)
	on := make([]bool, len(m.Iters))
	waits := make([]int, 0, len(m.Iters))
	for i, it := range m.Iters {
		if r, ok := it.(*Run); ok && cold(r) {
			waits = append(waits, i)
		}
	}
	if len(waits) < 2 {
		return m.rebuild(reverse, move)
	}
	m.moveBeside(on, waits, move)
	n := 0
	return m.rebuild(reverse, func(Iter) bool {
		n++
		return on[n-1]
	})
}

// moveBeside moves all iterators, those that wait for requests side by side, and notes which are on an entry. No
// goroutine outlives the call, also if a range filter of the application ends the caller's.
func (m *Merging) moveBeside(on []bool, waits []int, move func(Iter) bool) {
	left := make([]error, len(waits)) // what range filters did to a goroutine
	func() {
		m.pass.Seeking = true
		var wait sync.WaitGroup
		defer func() {
			wait.Wait()
			m.pass.Seeking = false
		}()
		for n, i := range waits {
			wait.Go(func() {
				left[n] = callback.Do("RangeFilter", func() error {
					on[i] = move(m.Iters[i])
					return nil
				})
			})
		}
		for i, it := range m.Iters {
			if len(waits) > 0 && waits[0] == i {
				waits = waits[1:]
				continue
			}
			on[i] = move(it)
		}
	}()
	callback.Resume(errors.Join(left...))
}

// coldFirst reports whether First needs a read, as far as is known without one.
func (l *Run) coldFirst() bool {
	return l.run.Len() > 0 && l.coldBlock(0, false)
}

// coldLast is coldFirst for Last.
func (l *Run) coldLast() bool {
	return l.run.Len() > 0 && l.coldBlock(l.run.Len()-1, true)
}

// coldBlock reports whether the first block, or the last, of the table at position n has to be read.
func (l *Run) coldBlock(n int, last bool) bool {
	r := l.run.At(n).Reader.Load()
	return r == nil || r.ColdEnd(last)
}

// coldGE is coldFirst for SeekGE.
func (l *Run) coldGE(k base.InternalKey) bool {
	n, t := l.run.Find(k.User)
	if t == nil || l.behind(n) {
		return false
	}
	r := t.Reader.Load()
	if bytes.Compare(k.User, t.Smallest) <= 0 {
		return l.coldBlock(n, false)
	}
	return r == nil || r.Cold(k.User)
}

// coldLT is coldFirst for SeekLT.
func (l *Run) coldLT(k base.InternalKey) bool {
	_, t := l.run.Find(k.User)
	if t == nil {
		return l.coldLast()
	}
	r := t.Reader.Load()
	return r == nil || r.Cold(k.User)
}

// share makes l's iterator prefetch as one of a pass.
func (l *Run) share(p *sstable.Pass) {
	l.far.Pass, l.far.Lower, l.far.Upper = p, l.lo, l.hi
	if l.far.Following == nil {
		l.far.Following = l.following
	}
	l.it.Share(&l.far)
	p.Iters = append(p.Iters, &l.it)
}

// following returns the reader of the table n positions on, if the pass will reach it. It opens the table if that is
// not open, as the pass would do later: that takes a request, or none if the table was just written.
func (l *Run) following(n int) *sstable.Reader {
	at := l.at + n
	if l.prefix != nil || at < 0 || at >= l.run.Len() {
		return nil
	}
	t := l.run.At(at)
	if l.behind(at) || l.ahead(at) {
		return nil
	}
	r, err := t.Open(l.cache)
	if err != nil {
		return nil // the pass gets the error when it reaches the table
	}
	return r
}
