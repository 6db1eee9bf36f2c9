package blob

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
)

// A record is
//
//	checksum  u32      CRC-32C of all up to the value, at place (file id, offset of the record)
//	form      u8       bits 0-3: compression, 1 none, 2 snappy, 3 zstd; bit 4: there is an expiry
//	key       uvarint  its length
//	size      uvarint  of the value as it was given
//	stored    uvarint  of the value as it is stored; not if it is not compressed
//	seq       uvarint  the sequence number with which the value was written
//	expiry    uvarint  microseconds since 1970 UTC, if there is one
//	key
//	value     as stored, in pieces of 256 KiB, of which the last may be shorter, each followed by
//	          its checksum u32: CRC-32C at place (file id, offset of the piece)
//
// The sequence number is that of the write. It stays when a compaction copies the record, even if the entry's own has
// become zero. So a repair, which may find only records, knows the newest of a key: the one with the largest number.
//
// The value is compressed as a whole, and decodes to 1 MiB, or to 64 times what is stored, at the most. Each piece has
// a checksum of its own, so that a reader of a long value returns only checked bytes, and needs no memory for all of
// it.

const (
	// MaxValue is the largest value in bytes.
	MaxValue = 1 << 30
	// MaxKey is the longest key in bytes.
	MaxKey = 64 << 10
	// MinRecord is the shortest record in bytes: one with no key and no value.
	MinRecord = sumSize + 1 + 3

	pieceSize   = 256 << 10
	sumSize     = 4
	maxPrefix   = sumSize + 1 + 5*binary.MaxVarintLen64 // of a record, up to its key
	maxRecord   = maxPrefix + MaxKey + MaxValue + MaxValue/pieceSize*sumSize
	formExpires = 0x10
)

// A Record is what a record says of its value.
type Record struct {
	Key         []byte
	Seq         base.SeqNum
	Expiry      uint64 // microseconds since 1970 UTC; 0: none
	Compression compression.Kind
	Size        int64 // of the value as it was given
	Stored      int64 // of the value as it is stored, without checksums
}

// pieces returns the length of n stored bytes with the checksums of their pieces.
func pieces(n int64) int64 { return n + (n+pieceSize-1)/pieceSize*sumSize }

// appendHead appends all of a record that stands before its value, at an offset in the file id.
func (r *Record) appendHead(dst []byte, id uint64, offset int64) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	form := byte(r.Compression)
	if r.Expiry > 0 {
		form |= formExpires
	}
	dst = append(dst, form)
	dst = binary.AppendUvarint(dst, uint64(len(r.Key)))
	dst = binary.AppendUvarint(dst, uint64(r.Size))
	if r.Compression != compression.None {
		dst = binary.AppendUvarint(dst, uint64(r.Stored))
	}
	dst = binary.AppendUvarint(dst, uint64(r.Seq))
	if r.Expiry > 0 {
		dst = binary.AppendUvarint(dst, r.Expiry)
	}
	dst = append(dst, r.Key...)
	binary.LittleEndian.PutUint32(dst[at:], base.Checksum(id, uint64(offset), dst[at+sumSize:]))
	return dst
}

// A prefix is a record up to its key, not checked yet.
type prefix struct {
	Record
	keyAt  int   // where the key begins
	keyLen int   // its length
	length int64 // of the record
}

func (p *prefix) valueAt() int { return p.keyAt + p.keyLen }

var (
	errRecord   = errors.New("malformed record")
	errHeadSum  = errors.New("checksum of its key does not match: the record is damaged or not in its place")
	errDecoded  = errors.New("its value decodes to another length than it says")
	errPieceSum = errors.New("checksum of its value does not match: the record is damaged or not in its place")
)

// decodePrefix decodes the beginning of a record, of which b has at least the first maxPrefix bytes or all up to its
// end. It believes nothing: what it says has yet to be checked.
func decodePrefix(b []byte) (p prefix, err error) {
	if len(b) <= sumSize {
		return p, errRecord
	}
	form := b[sumSize]
	p.Compression = compression.Kind(form &^ formExpires)
	if p.Compression == compression.Default || !p.Compression.Valid() {
		return p, fmt.Errorf("%w: it has the form %#x", errRecord, form)
	}
	rest, bad := b[sumSize+1:], false
	number := func(most uint64) uint64 {
		v, n := binary.Uvarint(rest)
		if n <= 0 || v > most {
			bad = true
			return 0
		}
		rest = rest[n:]
		return v
	}
	p.keyLen = int(number(MaxKey))
	p.Size = int64(number(MaxValue))
	p.Stored = p.Size
	if p.Compression != compression.None {
		p.Stored = int64(number(uint64(p.Size)))
		bad = bad || compression.Expands(int(p.Size), int(p.Stored))
	}
	p.Seq = base.SeqNum(number(uint64(base.MaxSeqNum)))
	if form&formExpires != 0 {
		p.Expiry = number(1<<64 - 1)
		bad = bad || p.Expiry == 0
	}
	if bad {
		return p, errRecord
	}
	p.keyAt = len(b) - len(rest)
	p.length = int64(p.valueAt()) + pieces(p.Stored)
	return p, nil
}

// check checks the key of a record at an offset of the file id, of which b has all up to the value.
func (p *prefix) check(b []byte, id uint64, offset int64) error {
	head := b[:p.valueAt()]
	if binary.LittleEndian.Uint32(head) != base.Checksum(id, uint64(offset), head[sumSize:]) {
		return errHeadSum
	}
	p.Key = head[p.keyAt:]
	return nil
}

// checkPiece checks a piece with its checksum, at an offset of the file id, and returns it without.
func checkPiece(b []byte, id uint64, offset int64) ([]byte, error) {
	n := len(b) - sumSize
	if binary.LittleEndian.Uint32(b[n:]) != base.Checksum(id, uint64(offset), b[:n]) {
		return nil, errPieceSum
	}
	return b[:n:n], nil
}

// joinPieces checks the pieces of a value, which begin at an offset of the file id, and moves them together: it returns
// the value as stored, in the memory of b.
func joinPieces(b []byte, id uint64, offset int64) ([]byte, error) {
	out := 0
	for at := 0; at < len(b); at += pieceSize + sumSize {
		piece, err := checkPiece(b[at:min(at+pieceSize+sumSize, len(b))], id, offset+int64(at))
		if err != nil {
			return nil, err
		}
		if out != at {
			copy(b[out:], piece)
		}
		out += len(piece)
	}
	return b[:out:out], nil
}

// decode returns the value that is stored, in buf's memory if it has room.
func (r *Record) decode(buf, stored []byte) ([]byte, error) {
	n, err := compression.DecodedSize(stored, r.Compression)
	if err != nil {
		return nil, err
	}
	if n >= 0 && int64(n) != r.Size {
		return nil, errDecoded
	}
	value, err := compression.Decompress(buf, stored, r.Compression)
	if err == nil && int64(len(value)) != r.Size {
		err = errDecoded
	}
	return value, err
}
