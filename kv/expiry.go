package kv

import (
	"fmt"
	"log/slog"
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

// A clock is Options.Clock, and what it said when it was asked last. The latter is the time for choices that are made
// with a lock held, where the clock must not be asked: it is a function of the application, and may panic.
type clock struct {
	of     func() time.Time
	system bool // it is time.Now
	log    *slog.Logger
	micros atomic.Uint64
}

// now returns the time in microseconds since 1970; 0 if it is before. The caller holds no lock.
func (c *clock) now() uint64 { return uint64(max(c.of().UnixMicro(), 0)) }

// after returns the moment, in microseconds since 1970, that is ttl from now.
func (c *clock) after(ttl time.Duration) (uint64, error) {
	if ttl <= 0 || ttl > MaxTTL {
		return 0, fmt.Errorf("%w: %v: want more than 0, and %v at the most", ErrInvalidTTL, ttl, MaxTTL)
	}
	at := c.of().Add(ttl).UnixMicro()
	if at <= 0 {
		return 0, fmt.Errorf("%w: the clock stands before 1970", ErrInvalidTTL)
	}
	return uint64(at), nil
}

// last returns what now returned when ask was called last.
func (c *clock) last() uint64 { return c.micros.Load() }

// ask brings last up to date. It is called before a lock is taken for a choice that depends on the time. A clock that
// panics leaves the time as it was.
func (c *clock) ask() {
	if c.system {
		c.micros.Store(c.now())
		return
	}
	callback.Log(c.log, callback.Do("Clock", func() error {
		c.micros.Store(c.now())
		return nil
	}))
}
