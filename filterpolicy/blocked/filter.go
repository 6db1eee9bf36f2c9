package blocked

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/mix"
)

// A Filter is a read-only view of a filter's bytes. Any number of goroutines may
// probe it.
type Filter struct {
	cells  []byte
	lines  uint64 // len(cells) / lineLen, at least 1
	probes int
}

// noBits stands in for the cells of an empty filter.
var noBits [lineLen]byte

// Decode checks data, every byte of it, and returns a view of it. The caller must
// not change data while the filter is in use. Lines that happen to straddle two
// cache lines cost a few per cent and nothing else. An error matches the sentinel of
// corruption.
func Decode(data []byte) (*Filter, error) {
	cells, footer, err := frame.Open(data, frame.Blocked)
	if err != nil {
		return nil, err
	}
	f, ok := view(cells, &footer)
	if !ok {
		return nil, frame.Corruptf("%d bytes do not hold %d lines with probes %v", len(cells), footer.Units, footer.Params)
	}
	return &f, nil
}

// Probe is a single probe of encoded bytes, for callers that keep no Filter and
// whose own checksum covers data. Bytes that are no filter answer true.
func Probe(data []byte, h uint64) bool {
	cells, footer, ok := frame.Peek(data, frame.Blocked)
	if !ok {
		return true
	}
	f, ok := view(cells, &footer)
	return !ok || f.MayContainHash(h)
}

// view makes a Filter that cannot read out of bounds, or says false.
func view(cells []byte, footer *frame.Footer) (f Filter, ok bool) {
	probes := int(footer.Params[0])
	if len(cells)%lineLen != 0 || footer.Units != uint64(len(cells)/lineLen) || footer.Seed != 0 ||
		probes < 1 || probes > maxProbes || footer.Params != [4]byte{byte(probes)} {
		return Filter{}, false
	}
	if len(cells) == 0 {
		cells = noBits[:]
	}
	return Filter{cells, uint64(len(cells) / lineLen), probes}, true
}

// MayContainHash reports whether a key with this hash may have been added; false
// is certain. It allocates nothing and reads one line.
//
// The first four bits are tested without a branch between them: of a hundred absent keys
// four or so get further, so that the one branch after them is well predicted where a
// branch after each bit would not be.
func (f *Filter) MayContainHash(h uint64) bool {
	z := mix.Round(h)
	line := (*[lineLen]byte)(f.cells[mix.Reduce(z, f.lines)*lineLen:])
	u, probes := firstWord(z), f.probes
	if probes >= 4 {
		if test(line, u)&test(line, u<<9)&test(line, u<<18)&test(line, u<<27)&1 == 0 {
			return false
		}
		u <<= 36
		probes -= 4
	}
	return rest(line, z, u, probes)
}

// rest tests the remaining bits: up to three in u, and then those of the second
// word.
func rest(line *[lineLen]byte, z, u uint64, probes int) bool {
	const left = perWord - 4
	all := uint64(1)
	for range min(probes, left) {
		all &= test(line, u)
		u <<= 9
	}
	if probes > left {
		v := secondWord(z)
		for range probes - left {
			all &= test(line, v)
			v <<= 9
		}
	}
	return all != 0
}
