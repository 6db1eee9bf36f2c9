package batchrepr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
)

// ErrMalformed is matched by every error of a Reader. One about an entry of a kind that
// this version does not know matches manifest.ErrNewerFormat as well.
var ErrMalformed = errors.New("malformed batch")

// A Reader returns the entries of a record in order.
type Reader struct {
	data []byte
	seq  base.SeqNum // of the next entry
	left uint32
}

// An Entry is one write. Its slices alias the record.
type Entry struct {
	Key   base.InternalKey
	Value []byte // of a range delete: its encoded end
}

// NewReader checks the header of a record and returns a Reader of its entries.
func NewReader(record []byte) (Reader, error) {
	if len(record) < HeaderSize {
		return Reader{}, ErrMalformed
	}
	r := Reader{
		seq:  base.SeqNum(binary.LittleEndian.Uint64(record)),
		left: binary.LittleEndian.Uint32(record[8:]),
		data: record[HeaderSize:],
	}
	// Each entry has two bytes at the least, so the count is bounded by the data.
	if r.seq > base.MaxSeqNum-base.SeqNum(r.left) || uint64(r.left)*2 > uint64(len(r.data)) {
		return Reader{}, ErrMalformed
	}
	return r, nil
}

// ReaderAt returns a Reader of the one entry that begins at an offset of a record, and has this number.
func ReaderAt(record []byte, at int, seq base.SeqNum) Reader {
	return Reader{data: record[at:], seq: seq, left: 1}
}

// KeyAt returns the key of the entry that begins at an offset of a record, which a Reader has read before.
func KeyAt(record []byte, at int) []byte {
	n, w := binary.Uvarint(record[at+1:])
	at += 1 + w
	return record[at : at+int(n)]
}

// All returns the entries of a record. An error is the last that it yields.
func All(record []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r, err := NewReader(record)
		for err == nil {
			var e Entry
			var ok bool
			if e, ok, err = r.Next(); err == nil && (!ok || !yield(e, nil)) {
				return
			}
		}
		yield(Entry{}, err)
	}
}

// Len returns the number of entries that are left.
func (r *Reader) Len() int { return int(r.left) }

// Rest returns how many bytes are left.
func (r *Reader) Rest() int { return len(r.data) }

// Seq returns the sequence number of the next entry.
func (r *Reader) Seq() base.SeqNum { return r.seq }

// Last returns the sequence number of the last entry.
func (r *Reader) Last() base.SeqNum { return r.seq + base.SeqNum(r.left) - 1 }

// Next returns the next entry; ok is false at the end.
func (r *Reader) Next() (e Entry, ok bool, err error) {
	if r.left == 0 {
		if len(r.data) > 0 {
			err = ErrMalformed
		}
		return e, false, err
	}
	if len(r.data) == 0 {
		return e, false, ErrMalformed
	}
	kind := base.Kind(r.data[0])
	r.data = r.data[1:]
	user, ok := r.bytes()
	switch kind {
	case base.KindDelete:
	case base.KindSet, base.KindRangeDelete, base.KindMerge, base.KindSetTTL:
		if ok {
			e.Value, ok = r.bytes()
		}
		ok = ok && (kind != base.KindSetTTL || len(e.Value) >= base.ExpirySize)
	case base.KindSetSeparated, base.KindSetTTLSeparated:
		if ok {
			e.Value, ok = r.bytes()
		}
		if ok {
			_, _, err := blob.HandleOf(kind, e.Value)
			ok = err == nil
		}
	default:
		return e, false, fmt.Errorf("%w: %w: an entry is of %s", ErrMalformed, manifest.ErrNewerFormat, kind)
	}
	if !ok {
		return e, false, ErrMalformed
	}
	e.Key = base.MakeKey(user, r.seq, kind)
	r.seq++
	r.left--
	return e, true, nil
}

func (r *Reader) bytes() ([]byte, bool) {
	n, w := binary.Uvarint(r.data)
	if w <= 0 || n > uint64(len(r.data)-w) {
		return nil, false
	}
	b := r.data[w : w+int(n) : w+int(n)]
	r.data = r.data[w+int(n):]
	return b, true
}
