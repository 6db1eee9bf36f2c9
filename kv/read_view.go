package kv

import (
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
)

// A readView is what a DB, a Snapshot or a Tx reads. All their reads go through it.
type readView struct {
	d    *DB
	at   base.SeqNum // the last write in view; base.MaxSeqNum: the present
	snap *Snapshot   // not nil: the view ends with it, and is of the state that it pins, if it does
	tx   *Tx         // not nil: its own writes are in view, and it notes what is read
}

// enter returns the state to read, with a reference on a stripe, which is the given one unless the view has its own. It
// also returns the number of the last write in view. The caller releases the reference. The state is nil if reads fail:
// see refused.
func (v *readView) enter(stripe int) (s *readState, _ int, at base.SeqNum) {
	if v.snap != nil {
		switch s := v.snap.pinned; {
		case s == nil && !v.snap.closed.Load():
		case s == nil || !v.snap.join():
			return nil, 0, 0
		default:
			return s, v.snap.stripe, v.at
		}
	}
	d := v.d
	for {
		s := d.state.Load()
		if s == nil {
			return nil, 0, 0
		}
		s.refs[stripe].n.Add(1)
		now := min(d.seq(), s.limit)
		// The reference counts only if the state was current after it was taken:
		// then a goroutine that replaces the state later sees it.
		//
		// So does the number, which is read in between. A state that is newer than the number would lack versions that
		// compactions have dropped since. And a newer state may have left out writes that will never be visible (see
		// resume.go). The numbers after theirs belong to it alone, and not to a state that still has them.
		if d.state.Load() != s {
			s.release(stripe)
			continue
		}
		if v.at != base.MaxSeqNum {
			now = v.at
		}
		return s, stripe, now
	}
}

// ended reports whether the snapshot was closed: what it should see may have been dropped.
func (v *readView) ended() bool { return v.snap != nil && v.snap.closed.Load() }

// refused returns why enter has found no state.
func (v *readView) refused() error {
	if v.ended() {
		return ErrClosed
	}
	return v.d.unreadable()
}

// look runs a lookup in the view, and copies its value if it wants it. If there is no value, the error is ErrNotFound,
// and l.dst is as it was.
func (v *readView) look(l *lookup) error {
	if v.tx != nil {
		if done, err := v.inTx(l); done {
			return err
		}
	}
	d, dst := v.d, l.dst
	began := d.counters.Latencies.Begin(counters.Get)
	l.hash = filterpolicy.Hash(l.key)
	s, stripe, at := v.enter(counters.OwnStripe())
	if s == nil {
		return v.refused()
	}
	defer s.release(stripe) // whatever filters, merger and clock do
	l.d, l.stripe, l.at = d, &d.counters.Stripes[stripe], at
	l.count()
	found, err := l.run(s)
	if found {
		l.copyValue(len(dst))
	}
	if err == nil && d.watch.Wants(l.hash) {
		d.watch.Lookup(l.key, l.hash, found, l.want && !l.sizeOnly)
	}
	d.counters.Latencies.End(counters.Get, began)
	switch {
	case v.ended():
		err = ErrClosed
	case err == nil && !found:
		err = ErrNotFound
	}
	if err != nil {
		l.dst = dst
	}
	return err
}

// inTx runs a lookup among a transaction's own writes. It reports whether they answer it: what they answer is not read
// from the store, and cannot conflict. Otherwise the lookup has their operands, if there are some, and goes on in the
// store.
func (v *readView) inTx(l *lookup) (done bool, err error) {
	if err := v.tx.usable(); err != nil {
		return true, err
	}
	own, err := v.tx.writes.memory()
	if err != nil {
		return true, err
	}
	l.d = v.d
	if own == nil || !l.inOwnWrites(own) {
		err = v.tx.reads.AddKey(l.key)
		return err != nil, err
	}
	found := l.found
	if l.chain.begun { // nothing of the store is needed except its merger
		s, stripe, _ := v.enter(counters.OwnStripe())
		if s == nil {
			return true, v.refused()
		}
		defer s.release(stripe)
		if found, err = l.combine(s, nil); err != nil {
			return true, err
		}
	}
	if !found {
		return true, ErrNotFound
	}
	l.copyValue(len(l.dst))
	return true, nil
}

// inOwnWrites looks in the index of a transaction's own writes, all of which it sees. It reports whether they answer
// the lookup.
func (l *lookup) inOwnWrites(m *memTable) (done bool) {
	l.hash, l.at = filterpolicy.Hash(l.key), base.MaxSeqNum
	l.cover = m.Tombstones().Cover(l.key, base.MaxSeqNum)
	if l.memtable(m, "") || l.cover > 0 {
		return true
	}
	l.cover = 0
	return false
}

// get appends the value of key to dst. If there is none, it returns dst as it was, and ErrNotFound.
func (v *readView) get(dst, key []byte) ([]byte, error) {
	var l lookup // a literal would be made elsewhere, and copied
	l.key, l.want, l.dst = key, true, dst
	err := v.look(&l)
	return l.dst, err
}

// has reports whether there is a value under key.
func (v *readView) has(key []byte) (bool, error) {
	var l lookup
	l.key = key
	err := v.look(&l)
	if err == ErrNotFound { //nolint:errorlint // nothing wraps it
		return false, nil
	}
	return err == nil, err
}
