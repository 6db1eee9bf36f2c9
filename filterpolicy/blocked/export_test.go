package blocked

import "github.com/siftkv/siftkv/filterpolicy/internal/spec"

// Fill makes the cells of a filter of given bits per key and probes.
func Fill(keyBits spec.Bits, probes int, hashes []uint64) []byte {
	lines, _ := keyBits.Units(len(hashes), lineBits)
	cells := make([]byte, lines*LineLen)
	fill(cells, hashes, probes)
	return cells
}

// ProbesFor returns the number of probes that a policy takes.
func ProbesFor(keyBits spec.Bits) int { return probesFor(keyBits) }

// TheoryOf returns the rate that theory gives for any number of probes.
func TheoryOf(keyBits spec.Bits, probes, keys int) float64 {
	lines, _ := keyBits.Units(keys, lineBits)
	return rate(float64(keys), float64(lines), probes)
}
