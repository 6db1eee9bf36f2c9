package blocked

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
)

// design is the family's own: an array of lines, which the footer counts.
var design = sizing.Design{
	Family: frame.Blocked, UnitBits: lineBits, Counted: 1,
	Probes: probesFor, Fill: fill, Rate: rate,
}

// A Builder collects hashes and turns them into a filter. It is for one goroutine at a time, and holds eight bytes per
// key until Finish.
type Builder struct {
	hashes hash64.List
	bits   spec.Bits
}

// AddHash adds a key's hash. A hash equal to the one before it is free.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys says no to
// everything. Finish declines only when the filter would not fit the address space; dst is then returned as it was.
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

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may probe it.
type Filter struct {
	lines  []line // at least one
	probes int
}

// noBits stands in for the lines of an empty filter.
var noBits [1]line

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data while the filter is
// in use. Lines that happen to straddle two cache lines cost a few per cent and nothing else. An error matches the
// sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Blocked, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and whose own checksum covers data. Bytes
// that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Blocked)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	f.lines, f.probes = linesOf(cells), int(footer.Params())
	if len(f.lines)*LineLen != len(cells) || footer.Units() != uint64(len(f.lines)) || footer.Seed() != 0 ||
		f.probes < 1 || f.probes > MaxProbes {
		return false
	}
	if len(f.lines) == 0 {
		f.lines = noBits[:]
	}
	return true
}

// headLen positions are tested before the first branch on a bit. Of a hundred absent keys four or so get past them, so
// that the branch is well predicted, where a branch after each bit would not be.
const headLen = 4

// MayContainHash reports whether a key with this hash may have been added; false is certain. It allocates nothing and
// reads one line.
func (f *Filter) MayContainHash(h uint64) bool {
	z := hash64.Round(h)
	l := &f.lines[hash64.Reduce(z, uint64(len(f.lines)))]
	u, probes := firstWord(z), f.probes
	if probes >= headLen {
		if l.missing(u, 55)|l.missing(u, 46)|l.missing(u, 37)|l.missing(u, 28) != 0 {
			return false
		}
		u <<= headLen * 9
		probes -= headLen
	}
	const left = perWord - headLen // in u, with the head or without
	missing := uint64(0)
	for range min(probes, left) {
		missing |= l.missing(u, 55)
		u <<= 9
	}
	if probes > left {
		v := secondWord(z)
		for range probes - left {
			missing |= l.missing(v, 55)
			v <<= 9
		}
	}
	return missing == 0
}
