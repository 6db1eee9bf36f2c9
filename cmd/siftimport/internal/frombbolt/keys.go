package frombbolt

import (
	"bytes"
	"slices"
)

// A bucket's keys get a prefix that says which bucket it is, so that the keys of a bucket are one range, in their
// order, and no key of another is in it. A prefix is the names from the outermost bucket on. A byte 0x00 of a name is
// written as 0x00 0xff; after a name comes 0x00 0x01, and the name of a bucket within, or 0x00 0x00, and a key as it
// is:
//
//	key "k" of bucket "x"          x 00 00 k
//	key "k" of bucket "y" in "x"   x 00 01 y 00 00 k
//
// So the keys of a bucket come before those of the buckets in it, and these in the order of their names.

// appendName appends a name and what comes after it.
func appendName(dst, name []byte, end byte) []byte {
	for {
		before, after, found := bytes.Cut(name, []byte{0})
		dst = append(dst, before...)
		if !found {
			return append(dst, 0, end)
		}
		dst, name = append(dst, 0, 0xff), after
	}
}

const (
	keyFollows  = 0
	nameFollows = 1
)

// Prefix returns the prefix of a bucket's keys; path has its name and, before it, those of the buckets it is in.
func Prefix(path ...[]byte) (prefix []byte) {
	for i, name := range path {
		end := byte(nameFollows)
		if i == len(path)-1 {
			end = keyFollows
		}
		prefix = appendName(prefix, name, end)
	}
	return prefix
}

// Split is the inverse of a prefix with a key after it. It reports false for what is none.
func Split(b []byte) (path [][]byte, key []byte, ok bool) {
	var name []byte
	for {
		at := bytes.IndexByte(b, 0)
		if at < 0 || at+1 == len(b) {
			return nil, nil, false
		}
		name = append(name, b[:at]...)
		next := b[at+1]
		b = b[at+2:]
		switch next {
		case 0xff:
			name = append(name, 0)
		case nameFollows, keyFollows:
			path = append(path, slices.Clone(name))
			name = name[:0]
			if next == keyFollows {
				return path, b, true
			}
		default:
			return nil, nil, false
		}
	}
}
