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
func Attempts(arity int, hashes *hash64.List) (failed, growth int, ok bool) {
	failed = -2 // a layout for no keys, and that of the attempt that succeeds
	plan := peel.Plan{Family: frame.Fuse, Bits: 8, Layout: func(keys uint64, g int) peel.Layout {
		growth = g
		failed++
		return layoutFor(arity, keys, g)
	}}
	_, ok = plan.Finish(nil, hashes)
	return failed, growth, ok
}

// Layout returns the layout of an array for n keys, after growth sizes that were too small.
func Layout(arity int, n uint64, growth int) peel.Layout { return layoutFor(arity, n, growth) }
