package base

import (
	"fmt"
	"strconv"
	"strings"
)

// SealLine returns a line of text that ends with a checksum: " crc=", the CRC-32C of all before it, bound to (0, 0), in
// hexadecimal, and a line feed. Small files that people read are such lines. The checksum has this place in every
// version of their formats, so that a damaged version is not taken for a newer one.
func SealLine(line string) []byte {
	return fmt.Appendf(nil, "%s crc=%08x\n", line, Checksum(0, 0, []byte(line)))
}

// UnsealLine returns the line that was sealed, and reports false if text is no such line.
func UnsealLine(text string) (line string, ok bool) {
	line, _, _ = strings.Cut(text, " crc=")
	return line, string(SealLine(line)) == text
}

// ScanLine reports whether a line begins with a form, in which %d stands for a decimal number and %x for a hexadecimal
// one. It sets the numbers in turn. A store scans no other text: fmt.Sscanf would be 50 KB of each program.
func ScanLine(line, form string, numbers ...*uint64) bool {
	for _, n := range numbers {
		before, after, _ := strings.Cut(form, "%")
		radix := 10 + 6*strings.Count(after[:1], "x")
		rest, ok := strings.CutPrefix(line, before)
		line = strings.TrimLeft(rest, "0123456789abcdef"[:radix])
		v, err := strconv.ParseUint(rest[:len(rest)-len(line)], radix, 64)
		if !ok || err != nil {
			return false
		}
		*n, form = v, after[1:]
	}
	return strings.HasPrefix(line, form)
}
