package kv

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// cells are a model of a store with operands and values that expire: of each key what
// was set last, until when, and the operands since.
type cells map[string]cell

type cell struct {
	base     string
	set      bool
	expiry   uint64 // in microseconds; 0: none
	operands []string
}

// modelMerger is associative and not commutative, so that an operand in a wrong place
// shows.
var modelMerger = Append(",")

func (c cells) set(k, v string) { c[k] = cell{base: v, set: true} }

func (c cells) delete(k string) { delete(c, k) }

func (c cells) setTTL(k, v string, expiry uint64) { c[k] = cell{base: v, set: true, expiry: expiry} }

func (c cells) merge(k, operand string) {
	e := c[k]
	e.operands = append(slices.Clip(e.operands), operand)
	c[k] = e
}

func (c cells) deleteRange(lo, hi []byte) {
	maps.DeleteFunc(c, func(k string, _ cell) bool {
		return (lo == nil || k >= string(lo)) && (hi == nil || k < string(hi))
	})
}

// get returns what a reader sees of a key at a time.
func (c cells) get(k string, now uint64) (string, bool) {
	e := c[k]
	parts := e.operands
	if e.set && (e.expiry == 0 || now < e.expiry) {
		parts = append([]string{e.base}, parts...)
	}
	return strings.Join(parts, ","), len(parts) > 0
}

// at returns all that a reader sees at a time.
func (c cells) at(now uint64) model {
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
