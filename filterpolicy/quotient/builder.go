package quotient

import (
	"iter"
	"math"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

const (
	maxAttempts = 10
	maxRoom     = 1 << 40 // keys: well above memory, well below overflow
	load        = 95      // per cent of slots in use
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine at a time. It
// holds eight bytes per key until Finish, which takes nine more while it runs, besides the filter.
type Builder struct {
	hashes hash64.List
	bits   uint64
	room   uint64 // the least number of keys to make room for
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any
// other duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys
// says no to everything. Finish declines if no attempt succeeds, which takes hashes made to that
// end. It also declines if fingerprints would need more than 64 bits, or the filter would not fit
// the address space. Then it returns dst as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	d := frame.Description{Keys: uint64(b.hashes.Len()), Params: uint32(b.bits)}
	start := len(dst)
	if d.Keys == 0 {
		return d.Seal(dst, start, frame.Quotient), true
	}
	for attempt := range maxAttempts {
		seed := hash64.Seed(&b.hashes, attempt)
		keys := hash64.Distinct(&b.hashes, seed)
		quotients, ok := quotientsFor(max(b.room, uint64(len(keys))), b.bits)
		if !ok {
			return dst, false
		}
		data, blocks, ok := encode(dst, quotients, b.bits, valuesOf(keys, quotients<<b.bits))
		if ok {
			d.Seed, d.Units = seed, blocks
			return d.Seal(data, start, frame.Quotient), true
		}
	}
	return dst, false
}

// valuesOf yields the values of mixed hashes, which ascend as they do.
func valuesOf(keys []uint64, values uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, z := range keys {
			if !yield(hash64.Reduce(z, values)) {
				return
			}
		}
	}
}

// quotientsFor returns the quotients that n keys fill to the load; false if values
// would need more than 64 bits or the table would not fit the address space.
func quotientsFor(n, remainderBits uint64) (quotients uint64, ok bool) {
	if n > maxRoom {
		return 0, false
	}
	quotients = (100*n + load - 1) / load
	size := (quotients/blockSlots + 1) * blockLen(remainderBits)
	return quotients, quotients <= math.MaxUint64>>remainderBits && size <= math.MaxInt/2
}
