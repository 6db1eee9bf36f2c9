package blocked

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// LineLen is the length of a line in bytes.
const LineLen = 64

// MaxProbes is the largest number of probes of a filter or a set.
const MaxProbes = 2 * perWord

// A Spot is where a Set keeps the bits of a key: in which of its lines, and where in that line. A key has the same bits
// in its line however many lines there are.
//
// Spots are for programs that keep the lines of a set elsewhere, for instance in the memory of a server. They are part
// of the format of sets: they differ between versions only if the format does.
type Spot struct{ z uint64 }

// Locate returns the spot of the key whose hash is h, the hash that Set.AddHash takes.
func Locate(h uint64) Spot { return Spot{hash64.Round(hash64.Mix(h))} }

// Line returns the number of the line, from 0, in a set of the given number of lines, at least one.
func (s Spot) Line(lines int) int { return int(hash64.Reduce(s.z, uint64(lines))) }

// Split divides the lines of a set into the given number of equal parts, at least one, and returns the number of the
// part, from 0, that has the key's line. Within tells the line's number in its part: if the part has n lines, it is the
// upper word of the 128-bit product of within and n, so that
//
//	line, _ := bits.Mul64(within, uint64(n))
//	s.Line(parts*n) == part*n + int(line)
//
// A key's part does not depend on n, so parts may have different numbers of lines.
func (s Spot) Split(parts int) (part int, within uint64) {
	hi, lo := bits.Mul64(s.z, uint64(parts))
	return int(hi), lo
}

// Bits appends the positions of the key's bits in its line to dst: one for each probe, of which there are 1 to
// MaxProbes. Positions are from 0 to 511, and two may be equal; position p is bit p%8 of byte p/8 of the line.
func (s Spot) Bits(dst []uint16, probes int) []uint16 {
	dst = appendPositions(dst, firstWord(s.z), min(probes, perWord))
	return appendPositions(dst, secondWord(s.z), min(probes, MaxProbes)-perWord)
}

// appendPositions appends the n topmost positions of u, none if n is negative.
func appendPositions(dst []uint16, u uint64, n int) []uint16 {
	for range n {
		dst = append(dst, uint16(u>>55))
		u <<= 9
	}
	return dst
}

// Shape returns how many lines and probes the set has that New makes for n keys at the rate, or New's error.
func Shape(n int, rate float64) (lines, probes int, err error) {
	keyBits, err := bitsFor(n, rate)
	if err != nil {
		return 0, 0, err
	}
	units, ok := keyBits.Units(n, lineBits)
	if !ok {
		return 0, 0, fmt.Errorf("filterpolicy: %d keys at %s bits each do not fit the address space", n, keyBits)
	}
	return int(units), probesFor(keyBits), nil
}

// crowd is a number of keys per line that sets nearly all bits even with one probe: the rate is 1 to six digits.
const crowd = 10_000

// Rate returns the false-positive rate that theory gives for a set of n distinct keys in the given lines with the given
// probes, both at least one; n may be an estimate. A line's number of keys is binomial, and the rate is the mean over
// the lines. The time it takes grows with n/lines, up to a millisecond.
func Rate(n float64, lines, probes int) float64 {
	switch {
	case n <= 0:
		return 0
	case n >= crowd*float64(lines):
		return 1
	}
	return math.Min(1, rate(n, float64(lines), probes))
}

// FromLines makes a set of lines that spots or another set filled with the given number of probes. Its Len is keys, its
// Cap is capacity. The set takes ownership of lines. An error matches filterpolicy.ErrCorrupt: lines is empty or ends
// within a line, or no set has these numbers.
func FromLines(lines []byte, probes, keys, capacity int) (*Set, error) {
	return ofParts(lines, uint64(probes), uint64(keys), uint64(capacity))
}

// Lines returns the set's own lines, one after the other, not a copy. Writing to them changes what the set contains,
// though not its Len, and needs the same lock as adding. A zero Set has none.
func (s *Set) Lines() []byte { return s.cells }

// Probes returns how many bits the set tests for a key. A zero Set has none.
func (s *Set) Probes() int { return s.filter.probes }
