package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// All numbers are little-endian. A log begins with a header:
//
//	0   magic     8 bytes  "SIFTWAL\x00"
//	8   version   u32      1
//	12  zero      u32
//	16  log id    u64      number of the file, unique in its store
//	24  checksum  u32      CRC-32C of bytes 0..23, at place (0, 0)
//	28  zero      u32
//
// This header keeps its layout in all versions, so that a log of a newer version is not taken for a damaged one.
//
// The file is divided into blocks of 32 KiB; the header is in the first. After
// the header comes a sequence of fragments:
//
//	0   checksum  u32      CRC-32C of all that follows, at place (log id, file offset of the fragment)
//	4   length    u16      of the payload
//	6   type      u8       1 full, 2 first, 3 middle, 4 last, 5 sync mark, 6 end of log
//	7   payload
//
// "At place (a, b)" means that the CRC starts with the 16 bytes of a and b as two u64. A fragment that belongs to
// another log, or to another place in this one, fails its checksum as a damaged one does.
//
// A fragment does not cross the end of a block. If fewer than 15 bytes are left in a block, they are zero and the next
// fragment starts in the next block. So every block but the first begins with a fragment, and a reader can continue
// there after damage. A record is the payload of one full fragment, or of a first, any number of middle, and a last one
// that follow each other.
//
// The payload of a sync mark is a u64: everything in the file before that offset had been made durable before the mark
// was written. Marks are between records, or come last. They distinguish bytes that a power cut may have torn
// from bytes that it cannot have: damage before a marked offset is not a torn tail.
//
// The end of log is the last fragment of a log that was closed, and the file's
// last bytes. Its payload is that of a sync mark.

const (
	// FormatVersion is the newest version of the format.
	FormatVersion  = 1
	magic          = "SIFTWAL\x00"
	blockSize      = 32 << 10
	fileHeaderSize = 32
	headerSize     = 7 // of a fragment
	markSize       = 8 // payload of a sync mark or end of log
	minRoom        = headerSize + markSize
)

type fragmentType uint8

const (
	typeFull   fragmentType = 1
	typeFirst  fragmentType = 2
	typeMiddle fragmentType = 3
	typeLast   fragmentType = 4
	typeSynced fragmentType = 5
	typeEnd    fragmentType = 6
)

// Errors that a Reader wraps with the file and the offset.
var (
	// ErrTornTail says that the log breaks off inside a record, and that nothing
	// of it follows: what a crash during a write leaves behind.
	ErrTornTail = errors.New("siftkv: log has a torn tail")

	// ErrNewerFormat says that a later release wrote the log.
	ErrNewerFormat = base.ErrNewerFormat

	// ErrNotLog says that a file does not begin as a log does. The error matches base.ErrCorruption too.
	ErrNotLog = errors.New("not a siftkv log")
)

// HeaderSize is the length in bytes of a log that has its header and nothing else.
const HeaderSize = fileHeaderSize

// roomAt returns the bytes left for fragments in the block of a file offset.
func roomAt(off int64) int {
	room := blockSize - int(off%blockSize)
	if room < minRoom {
		return 0
	}
	return room
}

// nextBlock returns the start of the block after that of off.
func nextBlock(off int64) int64 { return off - off%blockSize + blockSize }

func appendFileHeader(dst []byte, id uint64) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, id)
	dst = binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst[start:]))
	return binary.LittleEndian.AppendUint32(dst, 0)
}

// checkFileHeader checks the first bytes of a log that should have an id.
func checkFileHeader(h []byte, name string, id uint64) error {
	if len(h) < fileHeaderSize {
		return &base.CorruptionError{File: name, Offset: 0, What: "no room for a log header", Cause: ErrNotLog}
	}
	version, got := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint64(h[16:])
	switch {
	case string(h[:8]) != magic:
		return &base.CorruptionError{File: name, Offset: 0, What: "wrong magic number", Cause: ErrNotLog}
	case binary.LittleEndian.Uint32(h[24:]) != base.Checksum(0, 0, h[:24]):
		return base.Corruptf(name, 0, "log header: bad checksum")
	case version > FormatVersion:
		return fmt.Errorf("%s: %w: version %d, and this release reads up to %d; open it with a newer release",
			name, ErrNewerFormat, version, FormatVersion)
	case version == 0 || binary.LittleEndian.Uint32(h[12:]) != 0 || binary.LittleEndian.Uint32(h[28:]) != 0:
		return base.Corruptf(name, 0, "log header: impossible field")
	case got != id:
		return base.Corruptf(name, 0, "log header: this is log %d, not %d; the file was renamed or copied", got, id)
	}
	return nil
}

// appendFragment appends a fragment that is to stand at a file offset.
func appendFragment(dst []byte, id uint64, off int64, typ fragmentType, payload []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(len(payload)), byte(len(payload)>>8), byte(typ))
	dst = append(dst, payload...)
	f := dst[start:]
	binary.LittleEndian.PutUint32(f, base.Checksum(id, uint64(off), f[4:]))
	return dst
}

// A fragment is one that was found whole.
type fragment struct {
	typ     fragmentType
	payload []byte // aliases the block
}

func (f fragment) size() int64 { return headerSize + int64(len(f.payload)) }

// parseFragment reads the fragment at the start of b, the rest of a block from a file offset. It reports false for
// anything but a whole fragment of this log at this place.
func parseFragment(b []byte, id uint64, off int64) (fragment, bool) {
	if len(b) < headerSize {
		return fragment{}, false
	}
	end := headerSize + int(binary.LittleEndian.Uint16(b[4:]))
	typ := fragmentType(b[6])
	if end > len(b) || typ < typeFull || typ > typeEnd {
		return fragment{}, false
	}
	if binary.LittleEndian.Uint32(b) != base.Checksum(id, uint64(off), b[4:end]) {
		return fragment{}, false
	}
	f := fragment{typ, b[headerSize:end:end]}
	if typ >= typeSynced && (len(f.payload) != markSize || f.synced() > off || f.synced() < 0) {
		return fragment{}, false
	}
	return f, true
}

// synced returns what a sync mark or end of log says.
func (f fragment) synced() int64 { return int64(binary.LittleEndian.Uint64(f.payload)) }
