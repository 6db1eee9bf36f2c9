package blob

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// A Handle says where a value is. A table has it in place of the value:
//
//	file     uvarint  number of the file
//	ordinal  uvarint  of the record in the file, 0 for the first
//	offset   uvarint  of the record in the file
//	length   uvarint  of the record
//	size     uvarint  of the value, as it was given
//
// after the expiry (8 bytes) in an entry of base.KindSetTTLSeparated. Numbers of files are given out once in a store,
// so that a handle means the same in every table of it: a compaction copies handles as they are.
type Handle struct {
	File    uint64
	Ordinal uint64
	Offset  int64
	Length  int64
	Size    int64
}

// Append appends the encoded handle.
func (h Handle) Append(dst []byte) []byte {
	for _, n := range []uint64{h.File, h.Ordinal, uint64(h.Offset), uint64(h.Length), uint64(h.Size)} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

var errHandle = errors.New("malformed handle of a value")

// DecodeHandle decodes all of b. Its result is after a header, has the length of some record, and does not overflow.
// The reader must check whether it is in its file.
func DecodeHandle(b []byte) (h Handle, err error) {
	var numbers [5]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return h, errHandle
		}
		numbers[i], b = v, b[n:]
	}
	h = Handle{File: numbers[0], Ordinal: numbers[1], Offset: int64(numbers[2]), Length: int64(numbers[3]),
		Size: int64(numbers[4])}
	if len(b) > 0 || numbers[2] > maxFile || numbers[3] > maxRecord || numbers[4] > MaxValue || h.File == 0 ||
		h.Offset < headerSize || h.Length < MinRecord {
		return Handle{}, errHandle
	}
	return h, nil
}

// maxFile is more bytes than a file can have.
const maxFile = 1 << 60

// HandleOf returns the handle of an entry of kind base.KindSetSeparated or base.KindSetTTLSeparated with this value,
// and its expiry if it has one.
func HandleOf(kind base.Kind, value []byte) (h Handle, expiry uint64, err error) {
	if kind == base.KindSetTTLSeparated {
		var ok bool
		if expiry, value, ok = base.CutExpiry(value); !ok {
			return h, 0, errHandle
		}
	}
	h, err = DecodeHandle(value)
	return h, expiry, err
}

// String formats the handle for people.
func (h Handle) String() string {
	return fmt.Sprintf("record %d of file %d, %d bytes at offset %d", h.Ordinal, h.File, h.Length, h.Offset)
}
