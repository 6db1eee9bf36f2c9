package kv

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
)

// MaxTTL is the longest time that SetTTL takes: a hundred years.
const MaxTTL = 100 * 365 * 24 * time.Hour

// ErrInvalidTTL is returned by SetTTL for a time that is not positive or beyond MaxTTL, and if Options.Clock is before
// 1970. SetUntil returns it for a moment after the year 290,000, which has no number of microseconds.
var ErrInvalidTTL = base.ErrInvalidTTL

// SetTTL stores value under key until ttl has passed by Options.Clock; from then on the key is not there. The moment
// is fixed when SetTTL is called, in whole microseconds, so that a value never lives longer than ttl. It ends the way
// it would by Delete. Earlier values stay hidden, and operands that were merged with it since are left, with nothing
// under them. Every read asks the clock when it reaches the value, reads of snapshots and iterators included.
// Compaction drops expired values for good, even if the clock goes back later.
func (d *DB) SetTTL(key, value []byte, ttl time.Duration, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.SetTTL(key, value, ttl), o)
}

// SetUntil stores value under key until expiry by Options.Clock, as SetTTL does for a length of time. It is for a
// moment that is known already, such as that of a copied value. Expiry is rounded down to whole microseconds. The zero
// Time means never: SetUntil is Set then. If expiry has passed, the key is not there, as it would not be after Delete.
// MaxTTL does not bound it.
func (d *DB) SetUntil(key, value []byte, expiry time.Time, o *WriteOptions) error {
	b := d.scratchBatch()
	return commitScratch(b, b.SetUntil(key, value, expiry), o)
}

// expiryOf returns the moment, in microseconds since 1970, that is ttl from now.
func (d *DB) expiryOf(ttl time.Duration) (uint64, error) {
	if ttl <= 0 || ttl > MaxTTL {
		return 0, fmt.Errorf("%w: %v: want more than 0, and %v at the most", ErrInvalidTTL, ttl, MaxTTL)
	}
	at := d.opts.Clock().Add(ttl).UnixMicro()
	if at <= 0 {
		return 0, fmt.Errorf("%w: the clock stands before 1970", ErrInvalidTTL)
	}
	return uint64(at), nil
}

// now returns the clock's time in microseconds since 1970; 0 if it is before. The caller holds no lock, since it
// calls the application: see toldTime.
func (d *DB) now() uint64 { return uint64(max(d.opts.Clock().UnixMicro(), 0)) }

// A toldTime is what the clock said when it was asked last. It is the time for choices that are made with d.mu held,
// where the clock must not be asked, as it may panic.
type toldTime struct {
	system bool // the clock is time.Now
	micros atomic.Uint64
}

func (t *toldTime) time() uint64 { return t.micros.Load() }

// askClock brings d.told up to date. It is called before d.mu is taken for a choice that depends on the time. A clock
// that panics leaves the time as it was.
func (d *DB) askClock() {
	if d.told.system {
		d.told.micros.Store(d.now())
		return
	}
	callback.Log(d.log, callback.Do("Clock", func() error {
		d.told.micros.Store(d.now())
		return nil
	}))
}
