package quotient

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	table  table // without quotients in the filter of no keys
	seed   uint32
	stored uint64
	keys   uint64
}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Quotient, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Quotient)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	f.table.bits, f.table.blocks = uint64(footer.Params()), footer.Units()
	f.seed, f.keys = footer.Seed(), footer.Keys()
	if f.table.bits < mergedBits || f.table.bits > maxBits {
		return false
	}
	if f.table.blocks == 0 {
		return len(cells) == 0
	}
	// A block has bytes, so that the product does not wrap.
	if n := uint64(len(cells)); f.table.blocks > n || f.table.blocks*blockLen(f.table.bits)+trailerLen != n {
		return false
	}
	end := len(cells) - trailerLen
	f.table.cells = cells[:end]
	f.table.quotients = binary.LittleEndian.Uint64(cells[end:])
	f.stored = binary.LittleEndian.Uint64(cells[end+8:])
	return f.table.quotients != 0 && f.table.quotients <= f.table.blocks*blockSlots &&
		f.table.quotients <= math.MaxUint64>>f.table.bits &&
		f.stored != 0 && f.stored <= min(f.keys, f.table.blocks*blockSlots)
}

// MayContainHash reports whether a key with this hash may have been added; false is certain. It
// allocates nothing; four absent keys in ten are known as such by one bit.
func (f *Filter) MayContainHash(h uint64) bool {
	return f.table.quotients != 0 && f.table.has(f.Value(h))
}

// Len returns the number of values: of distinct keys, less those that share a value with another.
func (f *Filter) Len() uint64 { return f.stored }

// Geometry returns the number of quotients and the bits of a remainder; values are below quotients << bits.
func (f *Filter) Geometry() (quotients uint64, remainderBits int) {
	return f.table.quotients, int(f.table.bits)
}

// Value returns the value under which the filter knows a hash: its quotient and below it the bits of its remainder.
func (f *Filter) Value(h uint64) uint64 { return f.table.value(hash64.Seeded(h, f.seed)) }

// All yields the values of the filter in ascending order, each once.
func (f *Filter) All() iter.Seq[uint64] { return f.table.ascending() }

// ascending yields the values of the table, each once.
func (t *table) ascending() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		c := cursor{table: t}
		for v, ok := c.next(); ok && yield(v); v, ok = c.next() {
		}
	}
}

type cursor struct {
	*table
	block    uint64 // the next to look at
	occupied uint64 // quotients of the block before it with runs that still follow
	quotient uint64
	slot     uint64 // the next
	inside   bool   // the slot is of the quotient's run
}

// next returns the next value, false after the last.
func (c *cursor) next() (value uint64, ok bool) {
	if !c.inside {
		for c.occupied == 0 {
			if c.block >= c.blocks {
				return 0, false
			}
			c.occupied = c.table.occupied(c.table.block(c.block))
			c.block++
		}
		c.quotient = (c.block-1)*blockSlots + uint64(bits.TrailingZeros64(c.occupied))
		c.occupied &= c.occupied - 1
		c.slot = max(c.slot, c.quotient)
	}
	if c.slot >= c.blocks*blockSlots {
		return 0, false // not what a builder writes
	}
	value = c.quotient<<c.bits | c.remainder(c.slot)
	c.inside = !c.endsRun(c.slot)
	c.slot++
	return value, true
}
