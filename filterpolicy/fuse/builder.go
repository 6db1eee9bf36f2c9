package fuse

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish. During Finish it needs 23
// more at a million keys, beside the filter itself.
type Builder struct {
	hashes hash64.List
	plan   peel.Plan
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any other
// duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The
// filter of no keys says no to everything. Finish declines when no attempt
// succeeds, which takes hashes made to that end, or when there are more keys than
// the family's limit; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	return b.plan.Finish(dst, &b.hashes)
}
