package sstable

import (
	"bytes"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// addToFilter adds a user key that is not the one before to the filters. w.hash is its hash.
func (w *Writer) addToFilter(user []byte) {
	if w.ranges != nil {
		w.ranges.AddKey(user)
		w.props.RangeFilterKeys++
	}
	if !w.o.PrefixOnly {
		w.filter.AddHash(w.hash)
		w.props.FilterKeys++
	}
	if w.o.Prefix == nil {
		return
	}
	prefix, ok := w.o.Prefix.Prefix(user)
	if !ok {
		w.unprefixed = true
		return
	}
	if !w.prefixed || !bytes.Equal(prefix, w.prefix) {
		w.filter.AddHash(filterpolicy.Hash(prefix))
		w.props.FilterKeys++
		w.prefix, w.prefixed = append(w.prefix[:0], prefix...), true
	}
}

// writeFilter writes the filter block, unless the policy or its builder declines.
func (w *Writer) writeFilter() {
	data, ok := w.filter.Finish(nil)
	if w.o.Filter.Name() != none.Name {
		// Also if the builder declines, so that it is known what a rewrite would change.
		w.props.FilterPolicy = w.o.Filter.String()
		if w.o.Prefix != nil {
			w.props.FilterPrefix, w.props.PrefixOnly = w.o.Prefix.Name(), w.o.PrefixOnly
		}
	}
	if !ok || w.o.PrefixOnly && w.unprefixed {
		w.props.FilterKeys = 0
		return
	}
	w.props.FilterFamily = w.o.Filter.Name()
	w.props.filter = w.writeBlock(data, NoCompression)
	w.props.FilterBytes = uint64(len(data))
}

// writeRangeFilter writes the block of the range filter, unless its builder declines.
func (w *Writer) writeRangeFilter() {
	if w.ranges == nil {
		return
	}
	w.props.RangeFilterPolicy = w.o.RangeFilter.String()
	data, ok := w.ranges.Finish(nil)
	if !ok {
		w.props.RangeFilterKeys = 0
		return
	}
	w.props.RangeFilterFamily = w.o.RangeFilter.Name()
	w.props.rangeFilter = w.writeBlock(data, NoCompression)
	w.props.RangeFilterBytes = uint64(len(data))
}
