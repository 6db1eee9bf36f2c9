package blocked

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/bitarray"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// design is the family's own: an array of lines, which the footer counts.
var design = bitarray.Design{
	Family: frame.Blocked, UnitBits: lineBits, Counted: 1,
	Probes: probesFor, Fill: fill, Rate: rate,
}

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish.
type Builder struct {
	hashes hash64.List
	bits   spec.Bits
}

// AddHash adds a key's hash. A hash equal to the one before it is free.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The
// filter of no keys says no to everything. Finish declines only when the filter
// would not fit the address space; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	return design.Finish(dst, &b.hashes, b.bits)
}

func fill(cells []byte, hashes []uint64, probes int) {
	lines := linesOf(cells)
	first, second := min(probes, perWord), max(0, probes-perWord)
	for _, h := range hashes {
		z := hash64.Round(h)
		l := &lines[hash64.Reduce(z, uint64(len(lines)))]
		l.set(firstWord(z), first)
		if second != 0 {
			l.set(secondWord(z), second)
		}
	}
}
