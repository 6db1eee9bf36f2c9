package backup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// FormatVersion is the newest version of streams that this package writes, for stores with
// blob files; for others it is 1. It reads every version up to this one.
const FormatVersion = 2

const (
	magic           = "SIFTBAK\n"
	preambleSize    = 32
	frameHeaderSize = 9
	headerSize      = 48
	fileSize        = 24

	// HeadSize is the length of a stream's beginning up to the end of its header: a
	// Reader of HeadSize bytes has the header.
	HeadSize = preambleSize + frameHeaderSize + headerSize

	// MaxPayload bounds a frame's payload in bytes. A frame cannot be taken for a
	// preamble: its length would be well above.
	MaxPayload = 256 << 10
)

type frameType uint8

const (
	typeHeader      frameType = 1
	typeFile        frameType = 2
	typeData        frameType = 3
	typeDescription frameType = 4
	typeEnd         frameType = 5
	typeBlob        frameType = 6
)

// fileTypes are the types of the frames that begin a file, and kinds the kinds of file.
var (
	fileTypes = map[manifest.FileKind]frameType{manifest.FileTable: typeFile, manifest.FileBlob: typeBlob}
	kinds     = map[frameType]manifest.FileKind{typeFile: manifest.FileTable, typeBlob: manifest.FileBlob}
)

func (t frameType) String() string {
	names := [...]string{"frame of type 0", "header", "file", "data", "description", "end", "blob file"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("frame of type %d", uint8(t))
}

// A Header says what a stream holds and what it goes on from.
type Header struct {
	StoreID      uint64
	BackupID     uint64 // in the preamble
	Parent       uint64 // backup that this one goes on from; 0: none
	ParentOffset int64  // in the parent's stream: all before it is needed
	Files        uint64 // in the stream
	Bytes        int64  // of these files
	LastSeq      base.SeqNum
	HasBlobs     bool // the store has blob files: in the preamble, as the version
}

// version returns the format version of the stream.
func (h *Header) version() uint32 {
	if h.HasBlobs {
		return 2
	}
	return 1
}

func (h *Header) appendPreamble(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, h.version())
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, h.BackupID)
	dst = binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst[at:]))
	return binary.LittleEndian.AppendUint32(dst, 0)
}

func decodePreamble(b []byte) (h Header, err error) {
	if binary.LittleEndian.Uint32(b[24:]) != base.Checksum(0, 0, b[:24]) {
		return h, errors.New("preamble: checksum does not match")
	}
	v := binary.LittleEndian.Uint32(b[8:])
	if v > FormatVersion {
		return h, fmt.Errorf("backup: %w: version %d, this program reads up to %d", manifest.ErrNewerFormat, v,
			FormatVersion)
	}
	h.BackupID, h.HasBlobs = binary.LittleEndian.Uint64(b[16:]), v >= 2
	if h.BackupID == 0 || v == 0 {
		return Header{}, errors.New("preamble: impossible field")
	}
	return h, nil
}

func (h *Header) append(dst []byte) []byte {
	return appendUint64s(dst, h.StoreID, h.Parent, uint64(h.ParentOffset), h.Files, uint64(h.Bytes), uint64(h.LastSeq))
}

func (h *Header) decode(b []byte) error {
	if len(b) != headerSize {
		return errors.New("header: wrong length")
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	h.StoreID, h.Parent, h.ParentOffset = u(0), u(1), int64(u(2))
	h.Files, h.Bytes, h.LastSeq = u(3), int64(u(4)), base.SeqNum(u(5))
	if h.ParentOffset < 0 || h.Bytes < 0 || h.LastSeq > base.MaxSeqNum || h.Parent == 0 && h.ParentOffset > 0 {
		return errors.New("header: impossible field")
	}
	return nil
}
