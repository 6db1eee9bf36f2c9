package redisfilter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A serverClock tells the time of one server, so that programs whose own clocks differ agree about
// it. What it tells is an interval: the server was asked at some time and answered somewhat later.
type serverClock struct {
	ask  func(context.Context) (time.Time, error) // one trip to the server
	now  func() time.Time                         // of this machine
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

	// maxDrift is how much faster or slower one clock may go than another: several times what
	// oscillators do, and twice as much as a clock that is being corrected.
	maxDrift = 1e-3
)

// newServerClock returns the clock of the server that holds a key. The nodes of a cluster each have their own.
func newServerClock(c *Client, key string) *serverClock {
	ask := func(ctx context.Context) (time.Time, error) {
		const script = "local t = redis.call('TIME') return t[1] * 1000000 + t[2]" // TIME alone goes to any node
		cmd := redis.NewIntCmd(ctx, "eval", script, 1, key)
		c.run(ctx, cmd)
		micro, err := cmd.Result()
		return time.UnixMicro(micro), err
	}
	return &serverClock{ask: ask, now: time.Now}
}

// Refresh reads the clock; the watch calls it at every poll.
func (c *serverClock) Refresh(ctx context.Context) { _, _ = c.read(ctx) }

func (c *serverClock) read(ctx context.Context) (*reading, error) {
	r := &reading{sent: c.now()}
	var err error
	if r.server, err = c.ask(ctx); err != nil {
		return nil, err
	}
	r.received = c.now()
	c.last.Store(r)
	return r, nil
}

// bounds returns two times between which the server's is. It asks the server if no poll has for long.
func (c *serverClock) bounds(ctx context.Context) (earliest, latest time.Time, err error) {
	r := c.last.Load()
	if r == nil || r.age(c.now()) > maxReading {
		if r, err = c.read(ctx); err != nil {
			return time.Time{}, time.Time{}, err
		}
	}
	earliest, latest = r.bounds(c.now())
	return earliest, latest, nil
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
