package storetest

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A ModelStore is a model of a store with operands and values that expire: of each key what
// was set last, until when, and the operands since.
type ModelStore map[string]modelEntry

type modelEntry struct {
	base     string
	set      bool
	expiry   uint64 // in microseconds; 0: none
	Operands []string
}

// Set replaces the value of a key, with one that does not expire, and drops its operands.
func (c ModelStore) Set(k, v string) { c[k] = modelEntry{base: v, set: true} }

// Delete drops the value of a key and its operands.
func (c ModelStore) Delete(k string) { delete(c, k) }

// SetTTL is Set of a value that expires at a time in microseconds; 0 means never.
func (c ModelStore) SetTTL(k, v string, expiry uint64) {
	c[k] = modelEntry{base: v, set: true, expiry: expiry}
}

// Merge appends an operand to those of a key.
func (c ModelStore) Merge(k, operand string) {
	e := c[k]
	e.Operands = append(slices.Clip(e.Operands), operand)
	c[k] = e
}

// DeleteRange drops the keys from lo up to hi, which is excluded. A nil bound means none.
func (c ModelStore) DeleteRange(lo, hi []byte) {
	maps.DeleteFunc(c, func(k string, _ modelEntry) bool {
		return (lo == nil || k >= string(lo)) && (hi == nil || k < string(hi))
	})
}

// Get returns what a reader sees of a key at a time.
func (c ModelStore) Get(k string, now uint64) (string, bool) {
	e := c[k]
	parts := e.Operands
	if e.set && (e.expiry == 0 || now < e.expiry) {
		parts = append([]string{e.base}, parts...)
	}
	return strings.Join(parts, ","), len(parts) > 0
}

// At returns all that a reader sees at a time.
func (c ModelStore) At(now uint64) Model {
	m := Model{}
	for k := range c {
		if v, ok := c.Get(k, now); ok {
			m[k] = v
		}
	}
	return m
}

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

// Expiry returns when a key ends of its own; the zero Time for one that stays. The key is there.
func (c ModelStore) Expiry(k string) time.Time {
	e := c[k]
	if len(e.Operands) > 0 || e.expiry == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(e.expiry))
}

// SetUntil is what SetUntil does to the model.
func (c ModelStore) SetUntil(k, v string, expiry time.Time) {
	switch {
	case expiry.IsZero():
		c.Set(k, v)
	case expiry.UnixMicro() <= 0:
		c.Delete(k)
	default:
		c.SetTTL(k, v, uint64(expiry.UnixMicro()))
	}
}
