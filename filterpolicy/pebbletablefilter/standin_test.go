package pebbletablefilter

import "slices"

// The types below stand in for the main branch of Pebble, which no release has yet: of its four
// filter types the tests outside this package can name two, and must infer the others.

type tableFilterFamily string

type tableFilterWriter interface {
	AddKey(key []byte)
	Finish() (data []byte, family tableFilterFamily, ok bool)
}

// TableFilterPolicy has a public name.
type TableFilterPolicy interface {
	Name() string
	NewWriter() tableFilterWriter
}

// TableFilterDecoder has a public name.
type TableFilterDecoder interface {
	Family() tableFilterFamily
	MayContain(filter, key []byte) bool
}

// A Table is keys and their filter, if there is one; it uses filters as Pebble's tables do.
type Table struct {
	keys   []string
	family tableFilterFamily
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
