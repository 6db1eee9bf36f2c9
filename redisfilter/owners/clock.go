package owners

import (
	"context"
	"sync/atomic"
	"time"
)

// A clock tells the time of one server. It tells an interval: the server was asked at some time and answered somewhat
// later. Set Ask and Now before its first use. It is for any number of goroutines.
type clock struct {
	Ask  func(context.Context) (time.Time, error) // one trip to the server
	Now  func() time.Time                         // of this machine
	last atomic.Pointer[reading]
}

// A reading is what the server's clock said between two times of this machine's.
type reading struct {
	server         time.Time
	sent, received time.Time
}

const (
	// maxReading is how old a reading may be; polls take two a second.
	maxReading = 10 * time.Second

	// maxDrift is how much faster or slower one clock may go than another: several times what oscillators do, and
	// twice as much as a clock that is being corrected.
	maxDrift = 1e-3
)

// Refresh reads the clock; the watch calls it at every poll.
func (c *clock) Refresh(ctx context.Context) { _, _ = c.read(ctx) }

func (c *clock) Read(ctx context.Context) error {
	_, err := c.read(ctx)
	return err
}

func (c *clock) read(ctx context.Context) (*reading, error) {
	r := &reading{sent: c.Now()}
	var err error
	if r.server, err = c.Ask(ctx); err != nil {
		return nil, err
	}
	r.received = c.Now()
	c.last.Store(r)
	return r, nil
}

// Bounds returns two times between which the server's is. It asks the server if no poll has for long.
func (c *clock) Bounds(ctx context.Context) (earliest, latest time.Time, err error) {
	r := c.last.Load()
	if r == nil || r.age(c.Now()) > maxReading {
		if r, err = c.read(ctx); err != nil {
			return time.Time{}, time.Time{}, err
		}
	}
	earliest, latest = r.bounds(c.Now())
	return earliest, latest, nil
}

// Latest returns the latest time that the server may have, by the last reading. There must have been one.
func (c *clock) Latest() time.Time {
	_, latest := c.last.Load().bounds(c.Now())
	return latest
}

// age is by the wall clock too: the monotonic one stands still while a machine sleeps.
func (r *reading) age(now time.Time) time.Duration {
	return max(now.Sub(r.sent), now.Round(0).Sub(r.sent.Round(0)))
}

func (r *reading) bounds(now time.Time) (earliest, latest time.Time) {
	least, most := now.Sub(r.received), now.Sub(r.sent)
	drift := time.Duration(float64(most) * maxDrift)
	return r.server.Add(least - drift), r.server.Add(most + drift + time.Microsecond) // TIME cuts off what is less
}
