package kv

import (
	"math"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Lookups of the size and the expiry of a value, without a copy of it.

// GetSize returns the length in bytes of the value that Get would return, or ErrNotFound. It reads what Get reads, a
// block included, except blob files. It copies no value, and allocates nothing if no block has to be read. For a key
// with operands it makes the value, as Get does, and may fail as there.
func (d *DB) GetSize(key []byte) (int, error) { return d.present.size(key) }

// Expiry returns the moment at which key ends unless it is written again, in whole microseconds of Options.Clock: that
// of SetTTL. It is the zero Time for a value that stays, and for a key with operands. Even if the value under them
// ends, the operands are left, and the key is there (see SetTTL). For a key that is not there, because its moment has
// come or for any other reason, the error is ErrNotFound. The cost is that of Has.
func (d *DB) Expiry(key []byte) (time.Time, error) { return d.present.expiry(key) }

// GetSize is DB.GetSize as of the snapshot.
func (s *Snapshot) GetSize(key []byte) (int, error) { return s.view.size(key) }

// Expiry is DB.Expiry as of the snapshot: what was written later changes nothing. The clock is asked for the present.
func (s *Snapshot) Expiry(key []byte) (time.Time, error) { return s.view.expiry(key) }

// GetSize is DB.GetSize for what the transaction reads: the store as it was when it
// began, and its own writes. The key counts as read, as by Get.
func (t *Tx) GetSize(key []byte) (int, error) { return t.view.size(key) }

// Expiry is DB.Expiry for what the transaction reads, as GetSize is.
func (t *Tx) Expiry(key []byte) (time.Time, error) { return t.view.expiry(key) }

// size returns the length of the value of key.
func (v *readView) size(key []byte) (int, error) {
	var l lookup
	l.key, l.want, l.sizeOnly = key, true, true
	err := v.look(&l)
	switch {
	case err != nil:
		return 0, err
	case l.skipped:
		return l.size, nil
	}
	return len(l.value), nil
}

// expiry returns the moment at which key ends.
func (v *readView) expiry(key []byte) (time.Time, error) {
	var l lookup
	l.key = key
	err := v.look(&l)
	if err != nil {
		return time.Time{}, err
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

// answerSkipped is answer for a value that its table has left out. No operands above it need the value.
func (l *lookup) answerSkipped(trailer base.Trailer, p *sstable.Probe) (done bool) {
	l.skipped, l.size = true, p.ValueSize
	l.found = trailer.SeqNum() >= l.cover
	if trailer.Kind().Expires() && l.found {
		l.found, l.expiry = l.d.clock.now() < p.Expiry, p.Expiry
	}
	return true
}
