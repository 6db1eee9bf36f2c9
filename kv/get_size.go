package kv

import (
	"math"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Lookups of the size and the expiry of a value, without a copy of it.

// GetSize returns the length in bytes of the value that Get would return, or ErrNotFound.
// It reads what Get reads, a block included, except blob files. It copies no value, and
// allocates nothing if no block has to be read. For a key with operands it makes the
// value, as Get does, and may fail as there.
func (d *DB) GetSize(key []byte) (int, error) {
	l := lookup{key: key, at: base.MaxSeqNum, want: true, sizeOnly: true}
	return l.sizeFound(d.look(&l))
}

// Expiry returns the moment at which key ends unless it is written again, in whole
// microseconds of Options.Clock: that of SetTTL. It is the zero Time for a value that stays,
// and for a key with operands. Even if the value under them ends, the operands are left, and
// the key is there (see SetTTL). For a key that is not there, because its moment has come or
// for any other reason, the error is ErrNotFound. The cost is that of Has.
func (d *DB) Expiry(key []byte) (time.Time, error) {
	l := lookup{key: key, at: base.MaxSeqNum}
	return l.expiryFound(d.look(&l))
}

// GetSize is DB.GetSize as of the snapshot.
func (s *Snapshot) GetSize(key []byte) (int, error) {
	l := lookup{key: key, want: true, sizeOnly: true}
	return l.sizeFound(s.look(&l))
}

// Expiry is DB.Expiry as of the snapshot: what was written later changes nothing. The clock
// is asked for the present.
func (s *Snapshot) Expiry(key []byte) (time.Time, error) {
	l := lookup{key: key}
	return l.expiryFound(s.look(&l))
}

// GetSize is DB.GetSize for what the transaction reads: the store as it was when it
// began, and its own writes. The key counts as read, as by Get.
func (t *Tx) GetSize(key []byte) (int, error) {
	l := lookup{key: key, want: true, sizeOnly: true}
	return l.sizeFound(t.look(&l))
}

// Expiry is DB.Expiry for what the transaction reads, as GetSize is.
func (t *Tx) Expiry(key []byte) (time.Time, error) {
	l := lookup{key: key}
	return l.expiryFound(t.look(&l))
}

// sizeFound returns the size of what the lookup found.
func (l *lookup) sizeFound(ok bool, err error) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, ErrNotFound
	case l.skipped:
		return l.size, nil
	}
	return len(l.value), nil
}

// expiryFound returns the expiry of what the lookup found.
func (l *lookup) expiryFound(ok bool, err error) (time.Time, error) {
	switch {
	case err != nil:
		return time.Time{}, err
	case !ok:
		return time.Time{}, ErrNotFound
	}
	return expiryTime(l.expiry), nil
}

// expiryTime returns the moment of an expiry; the zero Time for 0.
func expiryTime(expiry uint64) time.Time {
	if expiry == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(min(expiry, math.MaxInt64)))
}

// answerSkipped is answer for a value that its table has left out. No operands above it
// need the value.
func (l *lookup) answerSkipped(trailer base.Trailer, p *sstable.Probe) (done bool) {
	l.skipped, l.size = true, p.ValueSize
	l.found = trailer.SeqNum() >= l.cover
	if trailer.Kind().Expires() && l.found {
		l.found, l.expiry = l.d.now() < p.Expiry, p.Expiry
	}
	return true
}

// look runs a lookup that is of the present if its at is MaxSeqNum. The caller must not use
// its value, which is valid only while the state is.
func (d *DB) look(l *lookup) (bool, error) {
	n := counters.OwnStripe()
	s, now := d.acquireNow(n)
	if s == nil {
		return false, d.unreadable()
	}
	defer d.release(s, n)
	if l.at == base.MaxSeqNum {
		l.at = now
	}
	return d.lookIn(s, n, l)
}

// lookIn runs a lookup in a state that the caller has acquired on a stripe.
func (d *DB) lookIn(s *readState, stripe int, l *lookup) (bool, error) {
	began := d.counters.Latencies.Begin(counters.Get)
	l.d, l.stripe, l.hash = d, &d.counters.Stripes[stripe], filterpolicy.Hash(l.key)
	l.count()
	ok, err := l.run(s)
	if d.watch.wants(l.hash) {
		d.watch.lookup(l, ok, err)
	}
	d.counters.Latencies.End(counters.Get, began)
	return ok, err
}

// look is DB.look as of the snapshot.
func (s *Snapshot) look(l *lookup) (bool, error) {
	if s.closed.Load() {
		return false, ErrClosed
	}
	l.at = s.seq
	if s.pinned != nil {
		if !s.join() {
			return false, ErrClosed
		}
		defer s.db.release(s.pinned, s.stripe)
		return s.db.lookIn(s.pinned, s.stripe, l)
	}
	ok, err := s.db.look(l)
	if s.closed.Load() { // meanwhile, as in get
		return false, ErrClosed
	}
	return ok, err
}

// look is DB.look for what the transaction reads. Its own writes come first: what they answer
// is not read from the store, and cannot conflict.
func (t *Tx) look(l *lookup) (bool, error) {
	if err := t.usable(); err != nil {
		return false, err
	}
	own, err := t.writes.memory()
	if err != nil {
		return false, err
	}
	l.d = t.db
	if own != nil && l.inOwnWrites(own) {
		return t.answered(l)
	}
	if t.writable {
		if err := t.reads.addKey(l.key); err != nil {
			return false, err
		}
	}
	if t.pinned != nil {
		return t.pinned.look(l)
	}
	l.at = t.seq
	return t.db.look(l)
}

// inOwnWrites looks in the index of a transaction's own writes, all of which it sees. It reports
// whether they answer the lookup; otherwise it has their operands, if there are some, and
// goes on in the store.
func (l *lookup) inOwnWrites(m *memTable) (done bool) {
	l.hash, l.at = filterpolicy.Hash(l.key), base.MaxSeqNum
	l.cover = m.Tombstones().Cover(l.key, base.MaxSeqNum)
	if l.memtable(m, "") || l.cover > 0 {
		return true
	}
	l.cover = 0
	return false
}

// answered returns the answer of a lookup that needs nothing of the store except its merger.
func (t *Tx) answered(l *lookup) (bool, error) {
	if !l.chain.begun {
		return l.found, nil
	}
	if t.pinned != nil {
		return l.combine(t.pinned.pinned, nil)
	}
	n := counters.OwnStripe()
	s := t.db.acquire(n)
	if s == nil {
		return false, t.db.unreadable()
	}
	defer t.db.release(s, n)
	return l.combine(s, nil)
}
