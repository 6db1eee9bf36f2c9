package fuse

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// What the simulation needs to see.

// Shape returns the cells of an array for so many keys, and of its segments.
func Shape(arity int, keys uint64) (cells, segment uint64) {
	l := layoutFor(arity, keys, 0)
	cells, _ = l.Size()
	return cells, l.length
}

// Attempts returns how many attempts at building failed, and how many sizes were too small.
func Attempts(arity int, hashes *hash64.List) (failed uint32, growth int, ok bool) {
	plan := peel.Plan{Family: frame.Fuse, Bits: 8, Layout: func(keys uint64, g int) peel.Layout {
		growth = g
		return layoutFor(arity, keys, g)
	}}
	data, ok := plan.Finish(nil, hashes)
	_, footer := frame.Peek(data, frame.Fuse)
	return footer.Seed(), growth, ok
}
