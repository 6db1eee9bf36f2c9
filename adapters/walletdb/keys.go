package siftwalletdb

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Buckets lie in the store's key space like directories. All that belongs to a bucket, and to the buckets in it,
// begins with the bucket's prefix, which is empty for the root; one range deletion is the end of it all. A prefix is
// followed by
//
//	entry key             a key of the bucket, and the name of a bucket in it
//	child number ...      the prefix of a bucket in it, and what follows that
//	sequence              the bucket's sequence, 8 bytes big-endian; none: 0
//	last                  the number of the last bucket that was made in it, a uvarint; none: 0
//	format                in the root: the version of this format, a uvarint
//
// Numbers of children are uvarints, of which none is the beginning of another: prefixes of siblings are neither. A
// number is given once: a bucket that is made again is another. What is under an entry begins with a byte that says
// what it is:
//
//	value bytes           the key's value
//	bucket number         the name's bucket, whose prefix is child number behind this one's
//
// Entries of a bucket are in the order of their keys, and come before its children: a cursor reads no more than
// the bucket.
const (
	kindEntry    = 0
	kindChild    = 1
	kindSequence = 2
	kindLast     = 3
	kindFormat   = 4

	isValue  = 0
	isBucket = 1
)

// formatVersion is what is under format. Another one is refused.
const formatVersion = 1

// maxKeySize is bbolt's: bytes of a key, and of the name of a bucket.
const maxKeySize = 32768

// A bucket whose prefix is longer takes no more buckets: some 2,000 levels.
const maxPrefix = 4096

var errEntry = errors.New("walletdb: siftkv: what is under a key is neither a value nor a bucket")

// subKey returns prefix, kind and rest.
func subKey(prefix []byte, kind byte, rest []byte) []byte {
	key := make([]byte, 0, len(prefix)+1+len(rest))
	return append(append(append(key, prefix...), kind), rest...)
}

// childPrefix returns the prefix of a bucket in a bucket.
func childPrefix(prefix []byte, number uint64) []byte {
	key := make([]byte, 0, len(prefix)+1+binary.MaxVarintLen64)
	return binary.AppendUvarint(append(append(key, prefix...), kindChild), number)
}

// entryOf returns what is under an entry: a value, which aliases what is stored, or the number of a bucket.
func entryOf(stored []byte) (value []byte, number uint64, nested bool, err error) {
	switch {
	case len(stored) > 0 && stored[0] == isValue:
		return stored[1:len(stored):len(stored)], 0, false, nil
	case len(stored) > 0 && stored[0] == isBucket:
		number, n := binary.Uvarint(stored[1:])
		if n > 0 && n == len(stored)-1 {
			return nil, number, true, nil
		}
	}
	return nil, 0, false, fmt.Errorf("%w: %x", errEntry, stored[:min(len(stored), 16)])
}
