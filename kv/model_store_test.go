package kv

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A modelStore is a model of a store with operands and values that expire: of each key what
// was set last, until when, and the operands since.
type modelStore map[string]modelEntry

type modelEntry struct {
	base     string
	set      bool
	expiry   uint64 // in microseconds; 0: none
	operands []string
}

// modelMerger is associative and not commutative, so that an operand in a wrong place
// shows.
var modelMerger = Append(",")

func (c modelStore) set(k, v string) { c[k] = modelEntry{base: v, set: true} }

func (c modelStore) delete(k string) { delete(c, k) }

func (c modelStore) setTTL(k, v string, expiry uint64) {
	c[k] = modelEntry{base: v, set: true, expiry: expiry}
}

func (c modelStore) merge(k, operand string) {
	e := c[k]
	e.operands = append(slices.Clip(e.operands), operand)
	c[k] = e
}

func (c modelStore) deleteRange(lo, hi []byte) {
	maps.DeleteFunc(c, func(k string, _ modelEntry) bool {
		return (lo == nil || k >= string(lo)) && (hi == nil || k < string(hi))
	})
}

// get returns what a reader sees of a key at a time.
func (c modelStore) get(k string, now uint64) (string, bool) {
	e := c[k]
	parts := e.operands
	if e.set && (e.expiry == 0 || now < e.expiry) {
		parts = append([]string{e.base}, parts...)
	}
	return strings.Join(parts, ","), len(parts) > 0
}

// at returns all that a reader sees at a time.
func (c modelStore) at(now uint64) model {
	m := model{}
	for k := range c {
		if v, ok := c.get(k, now); ok {
			m[k] = v
		}
	}
	return m
}

// A fakeClock stands still until it is moved. The zero value stands at 1970, plus a
// day.
type fakeClock struct{ micros atomic.Int64 }

const clockStart = int64(24 * time.Hour / time.Microsecond)

func (c *fakeClock) time() time.Time          { return time.UnixMicro(clockStart + c.micros.Load()) }
func (c *fakeClock) now() uint64              { return uint64(clockStart + c.micros.Load()) }
func (c *fakeClock) advance(by time.Duration) { c.micros.Add(by.Microseconds()) }
