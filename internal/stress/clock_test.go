package stress

import (
	"sync"
	"sync/atomic"
	"time"
)

// A clock is the stores' clock. It stands still until it is moved, and while somebody
// holds it, so that who reads knows what has expired.
type clock struct {
	hold    sync.RWMutex
	micros  atomic.Int64
	journal *journal // is told what happens; it may be nil
}

func newClock() *clock {
	c := &clock{}
	c.micros.Store(int64(24 * time.Hour / time.Microsecond))
	return c
}

// time is for the store, which calls it with locks held.
func (c *clock) time() time.Time { return time.UnixMicro(c.micros.Load()) }

func (c *clock) now() uint64 { return uint64(c.micros.Load()) }

func (c *clock) advance(by time.Duration) {
	c.hold.Lock()
	defer c.hold.Unlock()
	c.journal.write(record{Kind: recordClock, Micros: c.micros.Load() + by.Microseconds()})
	c.micros.Add(by.Microseconds())
}
