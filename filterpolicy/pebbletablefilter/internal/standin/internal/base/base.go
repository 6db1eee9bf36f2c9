// Package base holds the interfaces by which the main branch of Pebble makes and reads table
// filters, in a place that a package outside cannot import, as they are there.
package base

// TableFilterFamily names the encoding of a filter.
type TableFilterFamily string

// TableFilterWriter makes one table's filter.
type TableFilterWriter interface {
	AddKey(key []byte)
	Finish() (data []byte, family TableFilterFamily, ok bool)
}

// TableFilterPolicy makes writers.
type TableFilterPolicy interface {
	Name() string
	NewWriter() TableFilterWriter
}

// TableFilterDecoder reads the filters of a family.
type TableFilterDecoder interface {
	Family() TableFilterFamily
	MayContain(filter, key []byte) bool
}
