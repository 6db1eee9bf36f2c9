package fuse

import (
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
	_, made, ok := peel.Build(nil, hashes, 8, func(keys uint64, g int) peel.Layout {
		growth = g
		return layoutFor(arity, keys, g)
	})
	return made.Seed, growth, ok
}
