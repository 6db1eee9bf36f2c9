package sstable

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// FormatVersion is the newest version of the file format that this package writes, and reads with all before it:
//
//	1  values and tombstones
//	2  merge operands or expiring values too
//	3  data blocks with fingerprints in their hash tables
//	4  handles of values that are in blob files
//
// Versions 1 and 2 are no longer written, and their hash tables are not used. A file without
// handles is written in version 3, so that programs that know no more read it.
const FormatVersion = 4

const (
	plainVersion     = 1
	kindsVersion     = 2
	slotsVersion     = 3
	separatedVersion = 4

	firstBound = 5 // the first version that the footer's checksum is bound to
)

// Every block on disk is followed by a trailer:
//
//	compression  uint8   NoCompression, Snappy or Zstd
//	checksum     uint32  CRC-32C of: table id (8 bytes), offset of the block
//	                     (8 bytes), block as stored, compression
//
// The footer is the last 56 bytes of a file:
//
//	propsOffset  uint64  where the properties block begins
//	propsLength  uint32  its length without its trailer
//	reserved     uint32  0
//	tailLength   uint64  bytes from the first block of the tail to the file's end
//	tableID      uint64  a number of this file, in every checksum
//	fileSize     uint64  of the whole file
//	checksum     uint32  CRC-32C of the 40 bytes above, bound to (0, 0), or (version, 0) if version >= 5
//	version      uint32  3, or 4 if there are handles; 1 or 2 in older files
//	magic        8 bytes "SIFTSST\n"
//
// Checksum, version and magic keep their place in every version of the format. A version that this program does not
// know is believed if the checksum is bound to it: a damaged one is not taken for a newer format.

const (
	trailerSize = 5
	footerSize  = 56
	magic       = "SIFTSST\n"
)

// Errors of Open, besides those of the file system.
var (
	// ErrCorruption is matched by every error about damaged bytes.
	ErrCorruption = base.ErrCorruption
	// ErrClosed is returned by a closed reader.
	ErrClosed = base.ErrClosed
	// ErrNewerFormat is matched when a newer version of the package wrote the file.
	ErrNewerFormat = base.ErrNewerFormat
)

type footer struct {
	propsOffset uint64
	propsLength uint32
	tailLength  uint64
	tableID     uint64
	fileSize    uint64
	version     uint32
}

func (f footer) append(dst []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, f.propsOffset)
	dst = binary.LittleEndian.AppendUint32(dst, f.propsLength)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, f.tailLength)
	dst = binary.LittleEndian.AppendUint64(dst, f.tableID)
	dst = binary.LittleEndian.AppendUint64(dst, f.fileSize)
	dst = binary.LittleEndian.AppendUint32(dst, footerSum(f.version, dst[at:]))
	dst = binary.LittleEndian.AppendUint32(dst, f.version)
	return append(dst, magic...)
}

// footerSum returns the checksum of the first 40 bytes of a footer with a version.
func footerSum(version uint32, b []byte) uint32 {
	if version < firstBound {
		version = 0
	}
	return base.Checksum(uint64(version), 0, b)
}

// decodeFooter decodes the last footerSize bytes of a file of size bytes.
func decodeFooter(b []byte, size int64) (f footer, err error) {
	if len(b) != footerSize || string(b[48:]) != magic {
		return f, errors.New("footer: not a sorted file of this store (wrong magic number)")
	}
	version := binary.LittleEndian.Uint32(b[44:])
	switch {
	case binary.LittleEndian.Uint32(b[40:]) != footerSum(version, b[:40]):
		return f, fmt.Errorf("footer: checksum does not match, or the format version, %d, is damaged", version)
	case version > FormatVersion:
		return f, fmt.Errorf("%w: version %d, this program reads up to %d", ErrNewerFormat, version, FormatVersion)
	case version == 0:
		return f, errors.New("footer: no such format version: 0")
	}
	f = footer{
		propsOffset: binary.LittleEndian.Uint64(b),
		propsLength: binary.LittleEndian.Uint32(b[8:]),
		tailLength:  binary.LittleEndian.Uint64(b[16:]),
		tableID:     binary.LittleEndian.Uint64(b[24:]),
		fileSize:    binary.LittleEndian.Uint64(b[32:]),
		version:     version,
	}
	s := uint64(size)
	switch {
	case f.fileSize != s:
		return f, fmt.Errorf("footer: the file had %d bytes when it was written and has %d now", f.fileSize, s)
	case f.tailLength > s || f.tailLength < footerSize:
		return f, errors.New("footer: tail length is out of range")
	case f.propsOffset < s-f.tailLength || f.propsOffset+uint64(f.propsLength)+trailerSize+footerSize != s:
		return f, errors.New("footer: properties are out of range")
	}
	return f, nil
}

// appendTrailer appends the trailer of a stored block to dst.
func appendTrailer(dst []byte, tableID, offset uint64, stored []byte, c Compression) []byte {
	at := len(dst)
	dst = append(dst, byte(c))
	sum := base.ChecksumMore(base.Checksum(tableID, offset, stored), dst[at:])
	return binary.LittleEndian.AppendUint32(dst, sum)
}

var errChecksum = errors.New("checksum does not match: the block is damaged or not in its place")

// splitTrailer checks raw, a block with its trailer read at offset, and returns the block as stored.
func splitTrailer(raw []byte, tableID, offset uint64) ([]byte, Compression, error) {
	n := len(raw) - trailerSize
	if n < 0 {
		return nil, 0, errors.New("block is shorter than its trailer")
	}
	sum := base.Checksum(tableID, offset, raw[:n+1])
	if sum != binary.LittleEndian.Uint32(raw[n+1:]) {
		return nil, 0, errChecksum
	}
	return raw[:n:n], Compression(raw[n]), nil
}

// A handle names a block of the tail: offset in the file and length without the
// trailer. A zero length means that there is no such block.
type handle struct {
	offset uint64
	length uint64
}

var (
	errOutside        = errors.New("the block is not in the file")
	errTailCompressed = errors.New("a block of the tail is never compressed")
)

// cut returns the block out of data, the bytes of file tableID beginning at offset start. It verifies the checksum.
func (h handle) cut(data []byte, start, tableID uint64) ([]byte, error) {
	end := h.offset + h.length + trailerSize
	if h.offset < start || end < h.offset || end > start+uint64(len(data)) {
		return nil, errOutside
	}
	stored, c, err := splitTrailer(data[h.offset-start:end-start], tableID, h.offset)
	if err == nil && c != NoCompression {
		err = errTailCompressed
	}
	return stored, err
}
