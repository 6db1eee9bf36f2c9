package base

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A SeqNum orders the writes of one store. Every key of a batch has a number of its own; a larger number is a later
// write. Zero belongs to keys that every reader may see: in standalone files, and after compaction.
type SeqNum uint64

// MaxSeqNum is the largest sequence number: 56 bits, so that it shares one word with a Kind. A reader at MaxSeqNum sees
// everything.
const MaxSeqNum SeqNum = 1<<56 - 1

// A Kind says what an internal key does to its user key. The values are on disk (docs/format.md) and never change.
type Kind uint8

// The kinds.
const (
	KindDelete          Kind = 0 // a point tombstone
	KindSet             Kind = 1 // a value
	KindRangeDelete     Kind = 2 // a tombstone for [key, end)
	KindMerge           Kind = 3 // an operand that a merger combines with older versions
	KindSetTTL          Kind = 4 // a value that expires: its expiry is before it (AppendExpiry)
	KindSetSeparated    Kind = 5 // a blob value, in a file of large values: its handle
	KindSetTTLSeparated Kind = 6 // such a value that expires: its expiry is before the handle

	// KindMax is at least every kind, so that a search for (key, seq, KindMax) finds the newest entry of the key at or
	// below seq.
	KindMax Kind = 0xff
)

// String returns the kind's name in the field's vocabulary.
func (k Kind) String() string {
	switch k {
	case KindDelete:
		return "delete"
	case KindSet:
		return "set"
	case KindRangeDelete:
		return "range-delete"
	case KindMerge:
		return "merge"
	case KindSetTTL:
		return "set-ttl"
	case KindSetSeparated:
		return "set-separated"
	case KindSetTTLSeparated:
		return "set-ttl-separated"
	case KindMax:
		return "max"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Separated reports whether an entry of the kind has a handle in place of its value.
func (k Kind) Separated() bool { return k == KindSetSeparated || k == KindSetTTLSeparated }

// Inline returns the kind of an entry that has its value in place of a handle.
func (k Kind) Inline() Kind {
	switch k {
	case KindSetSeparated:
		return KindSet
	case KindSetTTLSeparated:
		return KindSetTTL
	}
	return k
}

// Expires reports whether an expiry stands before the value, or before its handle.
func (k Kind) Expires() bool { return k == KindSetTTL || k == KindSetTTLSeparated }

// A Trailer packs a sequence number (upper 56 bits) and a kind (lower 8).
type Trailer uint64

// MakeTrailer packs seq and kind.
func MakeTrailer(seq SeqNum, kind Kind) Trailer { return Trailer(seq)<<8 | Trailer(kind) }

// SeqNum returns the sequence number.
func (t Trailer) SeqNum() SeqNum { return SeqNum(t >> 8) }

// Kind returns the kind.
func (t Trailer) Kind() Kind { return Kind(t & 0xff) }

// An InternalKey is one version of a user key. The zero value is not a key.
type InternalKey struct {
	User    []byte
	Trailer Trailer
}

// MakeKey makes an internal key. It keeps user.
func MakeKey(user []byte, seq SeqNum, kind Kind) InternalKey {
	return InternalKey{User: user, Trailer: MakeTrailer(seq, kind)}
}

// SearchKey returns the smallest internal key of user that a reader at seq may see: everything before it is a smaller
// user key or a version too new.
func SearchKey(user []byte, seq SeqNum) InternalKey { return MakeKey(user, seq, KindMax) }

// SeqNum returns the key's sequence number.
func (k InternalKey) SeqNum() SeqNum { return k.Trailer.SeqNum() }

// Kind returns the key's kind.
func (k InternalKey) Kind() Kind { return k.Trailer.Kind() }

// Clone returns a copy that shares no memory with k.
func (k InternalKey) Clone() InternalKey {
	return InternalKey{User: bytes.Clone(k.User), Trailer: k.Trailer}
}

// String formats the key as "user"#seq,kind.
func (k InternalKey) String() string {
	return fmt.Sprintf("%q#%d,%s", k.User, k.SeqNum(), k.Kind())
}

// Compare orders internal keys by user key ascending, then by trailer descending, so that the newest version of a key
// comes first.
func Compare(a, b InternalKey) int {
	if c := bytes.Compare(a.User, b.User); c != 0 {
		return c
	}
	return cmp.Compare(b.Trailer, a.Trailer)
}

// CommonPrefix returns how many bytes a and b begin with in common.
func CommonPrefix(a, b []byte) int {
	n, m := 0, min(len(a), len(b))
	for ; n+8 <= m; n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < m && a[n] == b[n] {
		n++
	}
	return n
}
