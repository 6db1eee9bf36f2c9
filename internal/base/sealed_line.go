package base

import (
	"fmt"
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
