package models

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/storetest"
)

// A modelStore is a model of a store with operands and values that expire: of each key what
// was set last, until when, and the operands since.
type modelStore map[string]modelEntry

type modelEntry struct {
	base     string
	set      bool
	expiry   uint64 // in microseconds; 0: none
	Operands []string
}

// Set replaces the value of a key, with one that does not expire, and drops its operands.
func (c modelStore) Set(k, v string) { c[k] = modelEntry{base: v, set: true} }

// Delete drops the value of a key and its operands.
func (c modelStore) Delete(k string) { delete(c, k) }

// SetTTL is Set of a value that expires at a time in microseconds; 0 means never.
func (c modelStore) SetTTL(k, v string, expiry uint64) {
	c[k] = modelEntry{base: v, set: true, expiry: expiry}
}

// Merge appends an operand to those of a key.
func (c modelStore) Merge(k, operand string) {
	e := c[k]
	e.Operands = append(slices.Clip(e.Operands), operand)
	c[k] = e
}

// DeleteRange drops the keys from lo up to hi, which is excluded. A nil bound means none.
func (c modelStore) DeleteRange(lo, hi []byte) {
	maps.DeleteFunc(c, func(k string, _ modelEntry) bool {
		return (lo == nil || k >= string(lo)) && (hi == nil || k < string(hi))
	})
}

// Get returns what a reader sees of a key at a time.
func (c modelStore) Get(k string, now uint64) (string, bool) {
	e := c[k]
	parts := e.Operands
	if e.set && (e.expiry == 0 || now < e.expiry) {
		parts = append([]string{e.base}, parts...)
	}
	return strings.Join(parts, ","), len(parts) > 0
}

// At returns all that a reader sees at a time.
func (c modelStore) At(now uint64) storetest.Model {
	m := storetest.Model{}
	for k := range c {
		if v, ok := c.Get(k, now); ok {
			m[k] = v
		}
	}
	return m
}

// Expiry returns when a key ends of its own; the zero Time for one that stays. The key is there.
func (c modelStore) Expiry(k string) time.Time {
	e := c[k]
	if len(e.Operands) > 0 || e.expiry == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(e.expiry))
}

// SetUntil is what SetUntil does to the model.
func (c modelStore) SetUntil(k, v string, expiry time.Time) {
	switch {
	case expiry.IsZero():
		c.Set(k, v)
	case expiry.UnixMicro() <= 0:
		c.Delete(k)
	default:
		c.SetTTL(k, v, uint64(expiry.UnixMicro()))
	}
}
