// Package peel builds the arrays of xor and fuse filters, in which the exclusive-or
// of a key's cells is the key's fingerprint.
//
// A key that is alone at one of its places can always be given its fingerprint, by that cell, with any others. So it is
// taken away, which leaves other keys alone at theirs, and so on until no key is left; then the cells are set, those of
// the last key first. If keys are left of which none is alone anywhere, the attempt has failed, and another seed may do
// better. It nearly always succeeds up to a certain load (M. Molloy, "Cores in random hypergraphs and Boolean
// formulas", 2005), and nearly never above.
//
// A fingerprint is the low F bits of the mixed hash. The array is packed: F bits per cell without gaps, from the lowest
// bit of the first byte. Seven zero bytes follow, so that any cell can be read as a part of eight bytes.
package peel

import (
	"sync"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// Bounds of a build: how many sizes of the array are tried, with how many seeds each.
const (
	sizes        = 4
	seedsPerSize = 8
)

// A Layout says where the keys of an array have their places.
type Layout interface {
	// Size returns the number of cells and the number of places of a key, 3 or 4.
	Size() (cells uint64, arity int)

	// Params returns what the footer has to tell of the layout: its parameters after
	// the bits of a fingerprint, the first in the lowest byte.
	Params() uint32

	// Locate finds the places of mixed hashes: always the same for a hash, below the number of cells, and no two alike.
	Locate(zs []uint64, places []Places)
}

// build appends an array to dst in which each hash has its fingerprint. There must be at least one hash; equal ones
// count once, in whatever order they come. d says how many distinct ones there are and how many attempts failed.
//
// The layout is for the number of distinct keys; growth is 0 at first and then tells how many sizes have been too
// small. build fails after a bounded number of attempts, or if the array would be too large to address; then it returns
// dst as it was. In addition to the hashes and dst it needs 8 bytes per hash and 13 per cell, which are kept in a pool
// for the next build.
func build(dst []byte, hashes *hash64.List, bits uint64, layout func(keys uint64, growth int) Layout) (data []byte,
	d frame.Description, ok bool) {
	if uint64(hashes.Len()) > maxCells {
		return dst, frame.Description{}, false
	}
	s := pool.Get().(*scratch)
	defer pool.Put(s)
	for attempt := range sizes * seedsPerSize {
		seed := hash64.Seed(hashes, attempt)
		s.deal(hashes, seed)
		d = frame.Description{Keys: uint64(len(s.keys)), Seed: seed}
		l := layout(d.Keys, attempt/seedsPerSize)
		cells, arity := l.Size()
		if !fits(cells, bits) {
			break
		}
		s.clear(int(cells), arity)
		if !s.add(l, s.keys) || s.peel(l) != len(s.keys) {
			continue
		}
		start := len(dst)
		dst = append(dst, make([]byte, arraySize(cells, bits))...)
		s.assign(l, dst[start:], bits, len(s.keys))
		return dst, d, true
	}
	return dst, frame.Description{}, false
}

// A scratch is the memory of one build after another.
type scratch struct {
	keys  []uint64
	ends  []uint32 // where parts of keys end
	slots [maxSlots]uint16
	graph
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// resized returns n elements of any value, in the same memory if it is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// A Plan is what tells one family's filters from another's: how their arrays are laid out, and how the footer says so.
type Plan struct {
	Family frame.Family
	Bits   uint8 // of a fingerprint

	// Layout returns the layout for a number of distinct keys, after growth sizes that
	// were too small. Of the layout for no keys only Params counts.
	Layout func(keys uint64, growth int) Layout
}

// Finish appends the filter of hashes to dst. ok is false if build fails; then it returns dst as it was.
func (p Plan) Finish(dst []byte, hashes *hash64.List) (data []byte, ok bool) {
	l := p.Layout(0, 0)
	if hashes.Len() == 0 {
		return frame.Description{Params: p.params(l)}.Seal(dst, len(dst), p.Family), true
	}
	data, d, ok := build(dst, hashes, uint64(p.Bits), func(keys uint64, growth int) Layout {
		l = p.Layout(keys, growth)
		return l
	})
	if !ok {
		return dst, false
	}
	d.Params = p.params(l)
	d.Units, _ = l.Size()
	return d.Seal(data, len(dst), p.Family), true
}

// params returns the footer's parameters for a layout.
func (p Plan) params(l Layout) uint32 { return uint32(p.Bits) | l.Params()<<8 }

// Expected returns the size, footer included, and the false-positive rate of a
// filter of that many distinct keys. The size is exact unless all seeds of the first
// size fail. A filter too large to build has no bits and says maybe to everything.
func (p Plan) Expected(keys int) (bitsPerKey, fpr float64) {
	switch {
	case keys <= 0:
		return 0, 0
	case uint64(keys) > maxCells:
		return 0, 1
	}
	cells, _ := p.Layout(uint64(keys), 0).Size()
	if !fits(cells, uint64(p.Bits)) {
		return 0, 1
	}
	size := arraySize(cells, uint64(p.Bits)) + frame.FooterLen
	return 8 * float64(size) / float64(keys), rate(p.Bits)
}
