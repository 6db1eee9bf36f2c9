// Package frame is the envelope that every filter's bytes wear on disk: the
// family's cells first, then a footer that describes and guards them.
//
//	cells      n bytes  the family's own layout
//	keys       u64      hashes added, consecutive duplicates counted once
//	units      u64      bloom: bits; blocked: lines; cuckoo: buckets
//	seed       u32      which attempt at building succeeded; 0 where none can fail
//	params     4 bytes  bloom, blocked: probes, 0, 0, 0; cuckoo: fingerprint bits, slots, 0, 0
//	magic      u16      "SF"
//	family     u8       'b' bloom, 'l' blocked, 'c' cuckoo
//	version    u8       1
//	checksum   u32      CRC-32C (Castagnoli) of all bytes before it
//
// Integers are little-endian. The description stands behind the cells and not
// before them so that the cells keep the alignment of the buffer they are read
// into: a 64-byte line of a blocked filter is then one cache line.
//
// A filter of no keys has no cells and no units; it is the footer alone.
package frame

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/siftkv/siftkv/internal/base"
)

// FooterLen is the length of the footer in bytes.
const FooterLen = 32

const (
	magic   = 'S' | 'F'<<8
	version = 1
)

// ErrCorrupt is matched by every error about bytes that are not a filter. It
// matches base.ErrCorruption in turn.
var ErrCorrupt = fmt.Errorf("filterpolicy: not a valid filter: %w", base.ErrCorruption)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Family is the letter by which a footer names its family.
type Family byte

// The letters of the families are on disk and never change.
const (
	Bloom   Family = 'b'
	Blocked Family = 'l'
	Cuckoo  Family = 'c'
)

// A Footer describes the cells before it.
type Footer struct {
	Keys   uint64
	Units  uint64
	Seed   uint32
	Params [4]byte
}

// Seal appends the footer to dst, whose cells begin at start.
func (f Footer) Seal(dst []byte, start int, family Family) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, f.Keys)
	dst = binary.LittleEndian.AppendUint64(dst, f.Units)
	dst = binary.LittleEndian.AppendUint32(dst, f.Seed)
	dst = append(dst, f.Params[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, tag(family))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// tag is magic, family and version as the one word they are on disk.
func tag(family Family) uint32 { return magic | uint32(family)<<16 | version<<24 }

// Open checks every byte of data and returns the cells and their description.
// The cells are a part of data. What the numbers of the footer mean for the cells
// is for the family to check.
func Open(data []byte, family Family) (cells []byte, f Footer, err error) {
	cells, f, ok := Peek(data, family)
	if !ok {
		return nil, Footer{}, misfit(data, family)
	}
	body := data[:len(data)-4]
	want := binary.LittleEndian.Uint32(data[len(data)-4:])
	if got := crc32.Checksum(body, castagnoli); got != want {
		return nil, Footer{}, Corruptf("checksum is %08x, the footer says %08x: the filter is damaged", got, want)
	}
	if (f.Keys == 0) != (f.Units == 0) {
		return nil, Footer{}, Corruptf("%d keys in %d units", f.Keys, f.Units)
	}
	return cells, f, nil
}

// Peek is Open without the checksum, for callers whose own checksum covers data
// and who cannot afford another on every probe. It says false when the footer
// is not one of this family and version.
func Peek(data []byte, family Family) (cells []byte, f Footer, ok bool) {
	n := len(data) - FooterLen
	if n < 0 {
		return nil, Footer{}, false
	}
	d := data[n : n+FooterLen]
	if binary.LittleEndian.Uint32(d[24:]) != tag(family) {
		return nil, Footer{}, false
	}
	f.Keys = binary.LittleEndian.Uint64(d)
	f.Units = binary.LittleEndian.Uint64(d[8:])
	f.Seed = binary.LittleEndian.Uint32(d[16:])
	f.Params = [4]byte(d[20:24])
	return data[:n:n], f, true
}

// misfit says why Peek refused data.
func misfit(data []byte, family Family) error {
	if len(data) < FooterLen {
		return Corruptf("%d bytes are less than the %d of a footer: the filter is cut short", len(data), FooterLen)
	}
	d := data[len(data)-FooterLen:]
	if binary.LittleEndian.Uint16(d[24:]) != magic {
		return Corruptf("no footer at the end: the bytes are cut short or are not a filter")
	}
	if got := Family(d[26]); got != family {
		return Corruptf("family is %q, want %q", byte(got), byte(family))
	}
	return Corruptf("version is %d; this program reads version %d", d[27], version)
}

// Corruptf returns an error that matches ErrCorrupt and says what is wrong.
func Corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
