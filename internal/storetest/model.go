// Package storetest has what tests of stores share and what needs no store: models, a clock, object stores that count,
// processes.
package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/scale"
)

// A Model is what a store should be: a sorted map.
type Model map[string]string

// Merge does what kv.Append(",") does.
func (m Model) Merge(k, operand string) {
	if v, ok := m[k]; ok {
		operand = v + "," + operand
	}
	m[k] = operand
}

// Set replaces the value of a key.
func (m Model) Set(k, v string) { m[k] = v }

// Delete removes a key, if it is there.
func (m Model) Delete(k string) { delete(m, k) }

// Keys returns the keys in ascending order.
func (m Model) Keys() []string { return slices.Sorted(maps.Keys(m)) }

// DeleteRange removes the keys from lo up to hi, which is excluded. A nil bound means none.
func (m Model) DeleteRange(lo, hi []byte) {
	for k := range m {
		if (lo == nil || k >= string(lo)) && (hi == nil || k < string(hi)) {
			delete(m, k)
		}
	}
}

// A ModelWriter writes to a model, as a batch does to a store, of writes that do not expire.
type ModelWriter struct{ Model }

// Set implements kv.Writer.
func (w ModelWriter) Set(k, v []byte) error { w.Model.Set(string(k), string(v)); return nil }

// SetUntil implements kv.Writer.
func (w ModelWriter) SetUntil(k, v []byte, _ time.Time) error { return w.Set(k, v) }

// Merge implements kv.Writer.
func (w ModelWriter) Merge(k, v []byte) error { w.Model.Merge(string(k), string(v)); return nil }

// Delete implements kv.Writer.
func (w ModelWriter) Delete(k []byte) error { w.Model.Delete(string(k)); return nil }

// DeleteRange implements kv.Writer.
func (w ModelWriter) DeleteRange(lo, hi []byte) error { w.Model.DeleteRange(lo, hi); return nil }

// ModelSeeds is how many histories a test run goes through.
var ModelSeeds = uint64(scale.Count(scale.Fewer(40, 10), 300))
