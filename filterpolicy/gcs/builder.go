package gcs

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/filterpolicy/internal/collect"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/order"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time. It holds eight bytes per key until Finish, which takes nine more while it
// runs, beside the filter.
type Builder struct {
	hashes collect.Hashes
	bits   spec.Bits
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any
// other duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file.
// The filter of no keys says no to everything. Finish declines only files of more
// than 2^30 keys; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	d := frame.Description{Keys: uint64(b.hashes.Len())}
	start := len(dst)
	switch {
	case d.Keys > maxKeys:
		return dst, false
	case d.Keys != 0:
		keys := order.Distinct(&b.hashes, 0)
		buckets, width, divisor := geometry(b.bits, uint64(len(keys)))
		codes, positions := encode(keys, buckets, width, divisor)
		stride := positions[buckets] / buckets
		var offset uint64
		dst, offset = newIndex(dst, positions, stride)
		dst = append(dst, codes...)
		for _, number := range []uint64{0, width, divisor, stride} {
			dst = binary.LittleEndian.AppendUint64(dst, number)
		}
		d.Units, d.Params = buckets, uint32(offset)
	}
	return d.Seal(dst, start, frame.GCS), true
}

// encode writes the values of mixed hashes, which ascend, and returns where each bucket
// begins, and the end.
func encode(keys []uint64, buckets, width, divisor uint64) (codes []byte, positions []uint64) {
	var w writer
	positions = make([]uint64, 0, buckets+1)
	c := codeOf(divisor)
	next := uint64(0) // the least value that can follow
	for _, z := range keys {
		bucket, value := locate(z, buckets, width)
		for uint64(len(positions)) <= bucket {
			positions = append(positions, w.len())
			next = 0
		}
		if value+1 != next || next == 0 { // else the value before, once more
			w.put(c, value-next)
			next = value + 1
		}
	}
	for uint64(len(positions)) <= buckets {
		positions = append(positions, w.len())
	}
	w.flush()
	return w.bytes, positions
}
