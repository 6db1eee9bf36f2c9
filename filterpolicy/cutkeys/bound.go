package cutkeys

import "math/bits"

// A bound is the code of one end of a range, written on demand.
type bound struct {
	first    uint64 // the first 64 bits
	alphabet *alphabet
	key      []byte // behind the prefix
	next     int    // a byte of key whose code begins at pos, len(key) behind the last
	pos      int
}

// newBound returns the code of what is behind the prefix in a key.
func newBound(a *alphabet, key []byte) bound {
	w, pos := uint64(0), uint(0)
	for i, c := range key {
		l := a[c]
		w |= l.code() >> (pos & 63)
		if pos+l.len() > wordBits {
			return bound{first: w, alphabet: a, key: key, next: i, pos: int(pos)}
		}
		pos += l.len()
		if l&unknown != 0 {
			key = key[:i+1]
			break
		}
		if pos == wordBits {
			return bound{first: w, alphabet: a, key: key, next: i + 1, pos: wordBits}
		}
	}
	return bound{first: w, alphabet: a, key: key, next: len(key), pos: int(pos)}
}

// from returns the 64 bits at bit at. It takes time in proportion to the distance from the last
// call, or from the beginning if it goes back.
func (b *bound) from(at int) uint64 {
	if at < b.pos {
		b.next, b.pos = 0, 0
	}
	for b.next < len(b.key) {
		l := b.letter(b.next)
		if b.pos+int(l.len()) > at {
			break
		}
		b.pos += int(l.len())
		b.next++
	}
	w := uint64(0)
	for i, off := b.next, b.pos-at; i < len(b.key) && off < wordBits; i++ {
		l := b.letter(i)
		if off < 0 {
			w |= l.code() << -off
		} else {
			w |= l.code() >> off
		}
		off += int(l.len())
	}
	return w
}

// letter returns the code of a byte. Behind one that does not occur, the key ends.
func (b *bound) letter(i int) letter {
	l := b.alphabet[b.key[i]]
	if l&unknown != 0 {
		b.key = b.key[:i+1]
	}
	return l
}

// zeroFrom reports whether all bits at and after at are zeros.
func (b *bound) zeroFrom(at int) bool {
	for {
		if b.from(at) != 0 {
			return false
		}
		if b.next >= len(b.key) {
			return true
		}
		at += wordBits
	}
}

// common returns how many bits two bounds have in common, most at the most.
func (b *bound) common(c *bound, most int) int {
	if x := b.first ^ c.first; x != 0 || most <= wordBits {
		return min(most, bits.LeadingZeros64(x))
	}
	for at := wordBits; at < most; at += wordBits {
		if x := b.from(at) ^ c.from(at); x != 0 {
			return min(most, at+bits.LeadingZeros64(x))
		}
	}
	return most
}
