package objstore

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// A Meter takes the requests that a store sends for one call. It reaches the store in the call's context, through
// all that is wrapped around the store, so that retries, hedges and parts are counted where only the store sees them.
// A nil Meter counts nothing.
type Meter struct {
	counters *Counters
	outer    *Meter      // of the counters around these, or nil
	metered  atomic.Bool // the store has asked for the meter
	ended    bool        // the context had, before the call
}

type meterKey struct{}

// MeterFrom returns the meter of the call with a context, or nil. A store that asks for it must report every request
// that it sends for the call; WithCounters then counts none by itself.
func MeterFrom(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	for up := m; up != nil; up = up.outer {
		up.metered.Store(true)
	}
	return m
}

// Add counts requests when they have ended, such as a repeated one: Count{Requests: 1, Bytes: n, Retries: 1}. The
// kind is the request's, which need not be the call's. Calls, Unknown and Failed are counted elsewhere, and must be
// 0. Add is safe for concurrent use, also after the call has returned.
func (m *Meter) Add(kind Kind, c Count) {
	for ; m != nil; m = m.outer {
		m.counters.add(kind, c)
	}
}

func withMeter(ctx context.Context, c *Counters) (context.Context, *Meter) {
	outer, _ := ctx.Value(meterKey{}).(*Meter)
	m := &Meter{counters: c, outer: outer, ended: ctx.Err() != nil}
	return context.WithValue(ctx, meterKey{}, m), m
}

// end counts a call, which is worth so much if the store has not metered it.
func (m *Meter) end(kind Kind, c Count, err error) {
	idle := m.ended || errors.Is(err, ErrInvalidKey) || errors.Is(err, ErrClosed) || errors.Is(err, io.ErrShortBuffer)
	if m.metered.Load() || idle {
		c = Count{}
	} else if errors.Is(err, ErrThrottled) {
		c.Throttled = 1
	}
	c.Calls = 1
	if errors.Is(err, ErrUnknown) {
		c.Unknown = 1
	}
	if err != nil && !isAnswer(err) {
		c.Failed = 1
	}
	m.counters.add(kind, c)
}
