package blocked

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	lines  []line // at least one
	probes int
}

// noBits stands in for the lines of an empty filter.
var noBits [1]line

// Decode checks data, every byte of it, and returns a view of it. The caller must
// not change data while the filter is in use. Lines that happen to straddle two
// cache lines cost a few per cent and nothing else. An error matches the sentinel
// of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.Blocked, (*Filter).view) }

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	var f Filter
	return !f.view(frame.Peek(data, frame.Blocked)) || f.MayContainHash(h)
}

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	f.lines, f.probes = linesOf(cells), int(footer.Params())
	if len(f.lines)*lineLen != len(cells) || footer.Units() != uint64(len(f.lines)) || footer.Seed() != 0 ||
		f.probes < 1 || f.probes > maxProbes {
		return false
	}
	if len(f.lines) == 0 {
		f.lines = noBits[:]
	}
	return true
}

// headLen positions are tested before the first branch on a bit. Of a hundred
// absent keys four or so get past them, so that the branch is well predicted, where
// a branch after each bit would not be.
const headLen = 4

// MayContainHash reports whether a key with this hash may have been added; false is
// certain. It allocates nothing and reads one line.
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
