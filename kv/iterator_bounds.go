package kv

import "bytes"

// IterOptions bound an iterator, and say what it is for. Nil is no bounds, keys and values.
type IterOptions struct {
	// LowerBound is the smallest key that the iterator may reach; UpperBound is the
	// smallest key past its range. Nil: no bound. Both are copied.
	LowerBound, UpperBound []byte

	// Prefix keeps the iterator to the keys that begin with it; together with bounds, to the keys
	// for which all of them hold. It costs what LowerBound: Prefix and UpperBound:
	// PrefixEnd(Prefix) would, no more than a comparison. Where Options.Prefix extracts a prefix
	// of it, files without such keys are passed over. Empty: all keys. It is copied.
	Prefix []byte

	// KeysOnly leaves values out: Iterator.Value is nil. Values are not copied, and operands not
	// combined. A key with operands is there, whatever a Merger would say to them, and its
	// Iterator.ValueSize is -1. The same blocks are read, as values are next to their keys, but no
	// blob files.
	KeysOnly bool
}

// PrefixEnd returns the first key past all keys that begin with prefix, for IterOptions.UpperBound, DeleteRange or
// Compact. That is prefix up to its last byte that is not 0xff, and that byte plus one. If there is no such byte, as
// in an empty prefix, it returns nil, which for all of these means no bound. DeletePrefix refuses an empty prefix. The
// result is the caller's.
func PrefixEnd(prefix []byte) []byte {
	n := prefixEndLen(prefix)
	if n == 0 {
		return nil
	}
	return appendPrefixEnd(make([]byte, 0, n), prefix)
}

// prefixEndLen returns the length of a prefix's end; 0: it has none.
func prefixEndLen(prefix []byte) int {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	return n
}

// appendPrefixEnd appends the end of a prefix that has one.
func appendPrefixEnd(dst, prefix []byte) []byte {
	dst = append(dst, prefix[:prefixEndLen(prefix)]...)
	dst[len(dst)-1]++
	return dst
}

// bound sets the bounds: copies of the narrowest that the options give.
func (i *cursor) bound(o *IterOptions) {
	p := i.parts
	i.lower, i.upper = setBound(&p.lower, o.LowerBound), setBound(&p.upper, o.UpperBound)
	prefix := o.Prefix
	if len(prefix) == 0 {
		return
	}
	if bytes.Compare(prefix, i.lower) > 0 {
		i.lower = setBound(&p.lower, prefix)
	}
	// An upper bound that begins with the prefix, or is before it, is before its end.
	if prefixEndLen(prefix) == 0 ||
		i.upper != nil && (bytes.HasPrefix(i.upper, prefix) || bytes.Compare(i.upper, prefix) < 0) {
		return
	}
	p.upper = appendPrefixEnd(p.upper[:0], prefix)
	i.upper = p.upper
}

// setBound copies a bound, of which nil and an empty one differ, into a buffer.
func setBound(buf *[]byte, bound []byte) []byte {
	if bound == nil {
		return nil
	}
	if *buf == nil {
		*buf = make([]byte, 0, max(len(bound), 32))
	}
	*buf = append((*buf)[:0], bound...)
	return *buf
}
