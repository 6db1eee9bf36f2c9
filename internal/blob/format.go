package blob

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// All numbers are little-endian. A file begins with a header:
//
//	0   magic     8 bytes  "SIFTBLB\x00"
//	8   version   u32      1
//	12  order     u32      of the records: 0 by key, 1 as they were committed
//	16  file id   u64      random, not 0
//	24  checksum  u32      CRC-32C of bytes 0..23, at place (0, 0)
//	28  zero      u32
//
// goes on with records (record.go), and ends in a footer:
//
//	0   records     u64
//	8   keyBytes    u64    of all keys
//	16  valueBytes  u64    of all values, as they were given
//	24  fileSize    u64    of the whole file
//	32  file id     u64
//	40  checksum    u32    CRC-32C of bytes 0..39, at place (file id, offset of the footer)
//	44  version     u32    that of the header
//	48  magic       8 bytes "SIFTBLB\n"
//
// Magic, version and checksum of the header keep their places in every version of the format: a version is believed
// after its checksum, and the footer's, which has none, must be the same. With a file's id and size, a reader needs
// neither header nor footer: every checksum is bound to the id, so another file fails as a damaged one does.

const (
	// FormatVersion is the newest version of the format.
	FormatVersion = 1
	// MinSize is the size in bytes of a file without records.
	MinSize    = headerSize + footerSize
	headerSize = 32
	footerSize = 56
	headMagic  = "SIFTBLB\x00"
	tailMagic  = "SIFTBLB\n"
)

// The orders of records.
const (
	byKey    = 0
	byCommit = 1
)

// An Info describes a finished file.
type Info struct {
	Num        uint64 // of its name in a store; not in the file
	ID         uint64 // in every checksum of the file
	Size       int64  // of the file, in bytes
	Records    uint64
	KeyBytes   uint64 // of all keys
	ValueBytes uint64 // of all values, as they were given
	ByCommit   bool   // records are in the order of commits, not of keys; it is in the header alone
}

// RecordBytes returns how many bytes all records take.
func (i *Info) RecordBytes() uint64 { return uint64(i.Size) - MinSize }

func encodeHeader(id uint64, order uint32) []byte {
	dst := append(make([]byte, 0, headerSize), headMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, order)
	dst = binary.LittleEndian.AppendUint64(dst, id)
	dst = binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst))
	return binary.LittleEndian.AppendUint32(dst, 0)
}

// decodeHeader decodes the first headerSize bytes of a file.
func decodeHeader(b []byte) (id uint64, order uint32, err error) {
	if len(b) != headerSize || string(b[:8]) != headMagic {
		return 0, 0, errors.New("header: not a file of large values (wrong magic number)")
	}
	id, order = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint32(b[12:])
	switch version := binary.LittleEndian.Uint32(b[8:]); {
	case binary.LittleEndian.Uint32(b[24:]) != base.Checksum(0, 0, b[:24]):
		return 0, 0, errors.New("header: checksum does not match")
	case version > FormatVersion:
		return 0, 0, fmt.Errorf("%w: version %d of a file of large values, this program reads up to %d",
			base.ErrNewerFormat, version, FormatVersion)
	case version == 0:
		return 0, 0, errors.New("header: no such format version: 0")
	case id == 0 || order > byCommit || binary.LittleEndian.Uint32(b[28:]) != 0:
		return 0, 0, errors.New("header: malformed")
	}
	return id, order, nil
}

// appendFooter appends the footer of a file with the size of i.
func (i *Info) appendFooter(dst []byte) []byte {
	at := len(dst)
	for _, n := range []uint64{i.Records, i.KeyBytes, i.ValueBytes, uint64(i.Size), i.ID} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	dst = binary.LittleEndian.AppendUint32(dst, base.Checksum(i.ID, uint64(i.Size)-footerSize, dst[at:]))
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	return append(dst, tailMagic...)
}

func decodeFooter(b []byte, size int64) (i Info, err error) {
	if len(b) != footerSize || string(b[48:]) != tailMagic {
		return i, errors.New("footer: not that of a file of large values (wrong magic number)")
	}
	i = Info{
		Records:    binary.LittleEndian.Uint64(b),
		KeyBytes:   binary.LittleEndian.Uint64(b[8:]),
		ValueBytes: binary.LittleEndian.Uint64(b[16:]),
		Size:       int64(binary.LittleEndian.Uint64(b[24:])),
		ID:         binary.LittleEndian.Uint64(b[32:]),
	}
	switch {
	case binary.LittleEndian.Uint32(b[40:]) != base.Checksum(i.ID, uint64(size)-footerSize, b[:40]):
		return i, errors.New("footer: checksum does not match")
	case binary.LittleEndian.Uint32(b[44:]) != FormatVersion:
		return i, fmt.Errorf("footer: the version is %d, and the header's is %d", binary.LittleEndian.Uint32(b[44:]),
			FormatVersion)
	case i.Size != size:
		return i, fmt.Errorf("footer: the file had %d bytes when it was written and has %d now", i.Size, size)
	case i.ID == 0 || i.Records > i.RecordBytes():
		return i, errors.New("footer: malformed")
	}
	return i, nil
}
