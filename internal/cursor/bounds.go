package cursor

import "bytes"

// Options bound a cursor, and say what it is for: see kv.IterOptions, which has the same fields.
type Options struct {
	LowerBound, UpperBound []byte
	Prefix                 []byte
	KeysOnly               bool
}

// Bounds are the keys from Lower to Upper, without Upper; nil is no bound.
type Bounds struct {
	Lower, Upper []byte
	lower, upper []byte // the buffers of these
}

// Set makes b the narrowest bounds that the options give. It copies them.
func (b *Bounds) Set(o *Options) {
	b.Lower, b.Upper = setBound(&b.lower, o.LowerBound), setBound(&b.upper, o.UpperBound)
	prefix := o.Prefix
	if len(prefix) == 0 {
		return
	}
	if bytes.Compare(prefix, b.Lower) > 0 {
		b.Lower = setBound(&b.lower, prefix)
	}
	// An upper bound that begins with the prefix, or is before it, is before its end.
	if b.Upper != nil && (bytes.HasPrefix(b.Upper, prefix) || bytes.Compare(b.Upper, prefix) < 0) {
		return
	}
	if end := AppendPrefixEnd(b.upper[:0], prefix); end != nil {
		b.Upper, b.upper = end, end
	}
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

// release drops the bounds and large buffers.
func (b *Bounds) release() {
	lower, upper := b.lower, b.upper
	if cap(lower) > maxRetained || cap(upper) > maxRetained {
		lower, upper = nil, nil
	}
	*b = Bounds{lower: lower, upper: upper}
}

// AppendPrefixEnd appends to dst the first key past all keys that begin with prefix. It returns nil if there is none.
func AppendPrefixEnd(dst, prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return nil
	}
	dst = append(dst, prefix[:n]...)
	dst[len(dst)-1]++
	return dst
}
