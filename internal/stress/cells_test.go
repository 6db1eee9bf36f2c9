package stress

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Cells are a model of some keys: of each what was set last, until when, and the operands
// since.
type cells map[string]cell

type cell struct {
	base     string
	set      bool
	expiry   uint64 // in microseconds; 0: none
	operands []string
}

// operandSeparator is that of the stores' merger, which is associative and not
// commutative: an operand in a wrong place shows.
const operandSeparator = ","

// A write is one change of the model.
type write struct {
	kind       writeKind
	key, value string // of a range, its bounds
	expiry     uint64
}

type writeKind uint8

const (
	writeSet writeKind = iota
	writeTTL
	writeMerge
	writeDelete
	writeRange
)

func (c cells) apply(writes []write) {
	for _, w := range writes {
		switch w.kind {
		case writeSet, writeTTL:
			c[w.key] = cell{base: w.value, set: true, expiry: w.expiry}
		case writeMerge:
			e := c[w.key]
			e.operands = append(slices.Clip(e.operands), w.value)
			c[w.key] = e
		case writeDelete:
			delete(c, w.key)
		case writeRange:
			maps.DeleteFunc(c, func(k string, _ cell) bool { return k >= w.key && k < w.value })
		}
	}
}

// get returns what a reader sees of a key at a time.
func (c cells) get(k string, now uint64) (string, bool) {
	e := c[k]
	parts := e.operands
	if e.set && (e.expiry == 0 || now < e.expiry) {
		parts = append([]string{e.base}, parts...)
	}
	return strings.Join(parts, operandSeparator), len(parts) > 0
}

// expiry returns when a key that is there ends of its own; the zero Time: never.
func (c cells) expiry(k string) time.Time {
	e := c[k]
	if len(e.operands) > 0 || e.expiry == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(e.expiry))
}

// at returns all that a reader sees at a time.
func (c cells) at(now uint64) map[string]string {
	m := make(map[string]string, len(c))
	for k := range c {
		if v, ok := c.get(k, now); ok {
			m[k] = v
		}
	}
	return m
}

// expired counts the keys of which nobody sees anything any more.
func (c cells) expired(now uint64) int { return len(c) - len(c.at(now)) }

// unfolded counts the keys whose operands cannot become part of the value under them,
// because that ends before they do.
func (c cells) unfolded() (n int) {
	for _, e := range c {
		if e.expiry > 0 && len(e.operands) > 0 {
			n++
		}
	}
	return n
}
