package siftraft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// The record of an entry of the log:
//
//	1 byte    format: 1
//	1 byte    type of the entry, raft.LogType
//	uvarint   term
//	varint    AppendedAt: seconds since 1970 (the zero time is year 1, as any other time)
//	uvarint   and nanoseconds of that second, below 1e9
//	uvarint   length of the extensions, and the extensions
//	          the rest is the data
//
// The index is in the key. Checksums are the store's, of its log and its blocks.
const entryFormat = 1

// errEntry is what a record that is none gets.
var errEntry = errors.New("siftraft: a log entry that this version cannot read")

func appendEntry(dst []byte, e *raft.Log) []byte {
	dst = append(dst, entryFormat, byte(e.Type))
	dst = binary.AppendUvarint(dst, e.Term)
	dst = binary.AppendVarint(dst, e.AppendedAt.Unix())
	dst = binary.AppendUvarint(dst, uint64(e.AppendedAt.Nanosecond()))
	dst = binary.AppendUvarint(dst, uint64(len(e.Extensions)))
	dst = append(dst, e.Extensions...)
	return append(dst, e.Data...)
}

// decodeEntry makes of a record the entry at index. The entry keeps slices of the record. Data and extensions that
// have no bytes are nil, and the time is in UTC.
func decodeEntry(e *raft.Log, index uint64, record []byte) error {
	if len(record) < 2 || record[0] != entryFormat {
		return fmt.Errorf("%w: entry %d", errEntry, index)
	}
	r := fields{rest: record[2:]}
	*e = raft.Log{Index: index, Term: r.uvarint(), Type: raft.LogType(record[1])}
	seconds, nanos := r.varint(), r.uvarint()
	e.Extensions = r.bytes()
	if r.short || nanos >= uint64(time.Second) {
		return fmt.Errorf("%w: entry %d", errEntry, index)
	}
	e.AppendedAt = time.Unix(seconds, int64(nanos)).UTC()
	if len(r.rest) > 0 {
		e.Data = r.rest
	}
	return nil
}

// Fields are read from the front of a record. After one that is not whole all others are zero.
type fields struct {
	rest  []byte
	short bool // one was not whole
}

func (f *fields) uvarint() uint64 {
	n, size := binary.Uvarint(f.rest)
	if !f.take(size) {
		return 0
	}
	return n
}

func (f *fields) varint() int64 {
	n, size := binary.Varint(f.rest)
	if !f.take(size) {
		return 0
	}
	return n
}

// take goes on by the bytes of a number, of which there are none or fewer if it was not whole or too large.
func (f *fields) take(size int) bool {
	if size <= 0 || f.short {
		f.short, f.rest = true, nil
		return false
	}
	f.rest = f.rest[size:]
	return true
}

func (f *fields) byte() byte {
	if len(f.rest) == 0 {
		f.short = true
		return 0
	}
	b := f.rest[0]
	f.rest = f.rest[1:]
	return b
}

// bytes returns as many bytes as the number before them says, a slice of the record; nil if there are none.
func (f *fields) bytes() []byte {
	n := f.uvarint()
	if n > uint64(len(f.rest)) {
		f.short, f.rest = true, nil
		return nil
	}
	b := f.rest[:n:n]
	f.rest = f.rest[n:]
	if n == 0 {
		return nil
	}
	return b
}
