package fuse

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/collect"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/peel"
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish. During Finish it needs 23
// more at a million keys, beside the filter itself.
type Builder struct {
	hashes collect.Hashes
	policy Policy
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
	start := len(dst)
	d := frame.Description{Params: b.policy.params(0)}
	if b.hashes.Len() != 0 {
		var l layout
		data, made, ok := peel.Build(dst, &b.hashes, uint64(b.policy.bits), func(keys uint64, growth int) peel.Layout {
			l = layoutFor(int(b.policy.arity), keys, growth)
			return &l
		})
		if !ok {
			return dst, false
		}
		dst = data
		d = frame.Description{Keys: made.Keys, Seed: made.Seed, Params: b.policy.params(l.log)}
		d.Units, _ = l.Size()
	}
	return d.Seal(dst, start, frame.Fuse), true
}

// params returns the footer's parameters for segments of the given length.
func (p Policy) params(log uint64) uint32 {
	return uint32(p.bits) | uint32(p.arity)<<8 | uint32(log)<<16
}
