package gcs

import (
	"encoding/binary"
	"iter"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine at a time. It
// holds eight bytes per key until Finish, which takes nine more while it runs, besides the filter.
type Builder struct {
	hashes hash64.List
	bits   spec.Bits
	room   uint64 // keys that the range is for, if there are no more
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any
// other duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file.
// The filter of no keys says no to everything. Finish declines only files of more
// than 2^30 keys, or that are to have room for more; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	d := frame.Description{Keys: uint64(b.hashes.Len())}
	switch {
	case max(d.Keys, b.room) > maxKeys:
		return dst, false
	case d.Keys == 0:
		return d.Seal(dst, len(dst), frame.GCS), true
	}
	keys := hash64.Distinct(&b.hashes, 0)
	g := geometryOf(b.bits, max(b.room, uint64(len(keys))))
	data, d.Params = appendCells(dst, g, g.valuesOf(keys))
	d.Units = g.buckets
	return d.Seal(data, len(dst), frame.GCS), true
}

// valuesOf yields the values of mixed hashes, which ascend as they do.
func (g geometry) valuesOf(keys []uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, z := range keys {
			bucket, value := locate(z, g.buckets, g.width)
			if !yield(bucket*g.width + value) {
				return
			}
		}
	}
}

// appendCells appends the cells of a filter of ascending values to dst, and returns them with the bits of a deviation.
func appendCells(dst []byte, g geometry, values iter.Seq[uint64]) (data []byte, offset uint32) {
	codes, positions := encode(g, values)
	stride := positions[g.buckets] / g.buckets
	data, offset = newIndex(dst, positions, stride)
	data = append(data, codes...)
	for _, number := range []uint64{0, g.width, g.divisor, stride} {
		data = binary.LittleEndian.AppendUint64(data, number)
	}
	return data, offset
}

// encode writes ascending values, each once, and returns where each bucket begins, and the end.
func encode(g geometry, values iter.Seq[uint64]) (codes []byte, positions []uint64) {
	var w writer
	c := codeOf(g.divisor)
	positions = append(make([]uint64, 0, g.buckets+1), 0)
	least, end := uint64(0), g.width // the least value that can follow, and the bucket's end
	for v := range values {
		for ; v >= end; end += g.width {
			positions = append(positions, w.len())
			least = end
		}
		if v >= least { // else the value before, once more
			w.put(c, v-least)
			least = v + 1
		}
	}
	for uint64(len(positions)) <= g.buckets {
		positions = append(positions, w.len())
	}
	w.flush()
	return w.bytes, positions
}
