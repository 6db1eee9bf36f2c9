package storetest

import (
	"sync/atomic"
	"time"
)

// A Clock stands still until it is moved. The zero value stands at 1970, plus a
// day.
type Clock struct{ micros atomic.Int64 }

const clockStart = int64(24 * time.Hour / time.Microsecond)

// Time returns the time of the clock.
func (c *Clock) Time() time.Time { return time.UnixMicro(clockStart + c.micros.Load()) }

// Now returns the time of the clock in microseconds since 1970.
func (c *Clock) Now() uint64 { return uint64(clockStart + c.micros.Load()) }

// Advance moves the clock forward.
func (c *Clock) Advance(by time.Duration) { c.micros.Add(by.Microseconds()) }
