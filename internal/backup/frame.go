package backup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// FormatVersion is the version of streams and marks that this package writes. It
// reads every version up to this one.
const FormatVersion = 1

const (
	magic           = "SIFTBAK\n"
	preambleSize    = 32
	frameHeaderSize = 9
	headerSize      = 48
	fileSize        = 24

	// HeadSize is the length of a stream's beginning up to the end of its header: a
	// Reader of so many bytes has the header.
	HeadSize = preambleSize + frameHeaderSize + headerSize

	// MaxPayload bounds a frame's payload in bytes. A frame cannot be taken for a
	// preamble: its length would be far beyond.
	MaxPayload = 256 << 10
)

type frameType uint8

const (
	typeHeader      frameType = 1
	typeFile        frameType = 2
	typeData        frameType = 3
	typeDescription frameType = 4
	typeEnd         frameType = 5
)

func (t frameType) String() string {
	names := [...]string{"frame of type 0", "header", "file", "data", "description", "end"}
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
}

func appendPreamble(dst []byte, id uint64) []byte {
	at := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, id)
	dst = binary.LittleEndian.AppendUint32(dst, base.Checksum(0, 0, dst[at:]))
	return binary.LittleEndian.AppendUint32(dst, 0)
}

func decodePreamble(b []byte) (id uint64, err error) {
	if binary.LittleEndian.Uint32(b[24:]) != base.Checksum(0, 0, b[:24]) {
		return 0, errors.New("preamble: checksum does not match")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v > FormatVersion {
		return 0, fmt.Errorf("backup: %w: version %d, this program reads up to %d", manifest.ErrNewerFormat, v,
			FormatVersion)
	}
	id = binary.LittleEndian.Uint64(b[16:])
	if id == 0 || binary.LittleEndian.Uint32(b[8:]) == 0 {
		return 0, errors.New("preamble: impossible field")
	}
	return id, nil
}

func (h *Header) append(dst []byte) []byte {
	return appendUint64s(dst, h.StoreID, h.Parent, uint64(h.ParentOffset), h.Files, uint64(h.Bytes), uint64(h.LastSeq))
}

func decodeHeader(b []byte, id uint64) (Header, error) {
	if len(b) != headerSize {
		return Header{}, errors.New("header: wrong length")
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	h := Header{StoreID: u(0), BackupID: id, Parent: u(1), ParentOffset: int64(u(2)), Files: u(3), Bytes: int64(u(4)),
		LastSeq: base.SeqNum(u(5))}
	if h.ParentOffset < 0 || h.Bytes < 0 || h.LastSeq > base.MaxSeqNum || h.Parent == 0 && h.ParentOffset > 0 {
		return Header{}, errors.New("header: impossible field")
	}
	return h, nil
}
