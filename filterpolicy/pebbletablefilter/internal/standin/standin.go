// Package standin stands in for the main branch of Pebble, which no release has yet: it has public names for
// the same two of its four filter types, and tables that use filters as Pebble's do.
package standin

import (
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/pebbletablefilter/internal/standin/internal/base"
)

// TableFilterPolicy has a public name.
type TableFilterPolicy = base.TableFilterPolicy

// TableFilterDecoder has a public name.
type TableFilterDecoder = base.TableFilterDecoder

// A Table is keys and their filter, if there is one.
type Table struct {
	keys   []string
	family base.TableFilterFamily
	filter []byte
}

// WriteTable makes a table of sorted keys.
func WriteTable(policy TableFilterPolicy, keys []string) *Table {
	t := &Table{keys: keys}
	w := policy.NewWriter()
	for _, k := range keys {
		w.AddKey([]byte(k))
	}
	if data, family, ok := w.Finish(); ok {
		t.filter, t.family = data, family
	}
	return t
}

// Filter returns the filter in the table under the name of its family.
func (t *Table) Filter() (family string, data []byte) { return string(t.family), t.filter }

// Get looks a key up and says whether the keys were searched for it.
func (t *Table) Get(decoders []TableFilterDecoder, key string) (found, searched bool) {
	for _, d := range decoders {
		if t.family != "" && d.Family() == t.family {
			if !d.MayContain(t.filter, []byte(key)) {
				return false, false
			}
			break
		}
	}
	_, found = slices.BinarySearch(t.keys, key)
	return found, true
}
