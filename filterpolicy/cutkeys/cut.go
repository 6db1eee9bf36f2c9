package cutkeys

import "math/bits"

// write cuts the keys of the records, in their order, and gives them to w.
func (b *Builder) write(w *writer, letters *alphabet) {
	c := cutter{letters: letters}
	r := reader{left: b.records}
	before := 0 // bits that a key has in common with the one before it
	for more := r.next(); more; {
		c.load(max(0, r.shared-b.prefix), r.tail[max(0, b.prefix-r.shared):])
		after := 0
		if more = r.next(); more {
			after = c.common(r.shared-b.prefix, r.tail[max(0, b.prefix-r.shared):])
		}
		end := max(before, after) + 1 + b.extra
		c.encode(end)
		w.add(&c.path, before, end)
		before = after
	}
	w.close()
}

// A cutter turns keys without their prefix into codes. What a key has in common with the one before it is
// not encoded again.
type cutter struct {
	letters *alphabet
	key     []byte
	starts  []int // of the bytes of key that are encoded: where in path their codes begin
	path    path
}

// load makes key the one that has some bytes in common with the key before, and then a tail.
func (c *cutter) load(shared int, tail []byte) {
	c.key = append(c.key[:shared], tail...)
	if shared < len(c.starts) {
		c.path.truncate(c.starts[shared])
		c.starts = c.starts[:shared]
	}
}

// common returns how many bits the key's code has in common with that of the next one, which
// has some bytes in common with it and then a tail.
func (c *cutter) common(shared int, tail []byte) int {
	for len(c.starts) < shared {
		c.push()
	}
	own, other := uint64(0), c.letters[tail[0]].code()
	if shared < len(c.key) {
		own = c.letters[c.key[shared]].code()
	}
	at := c.path.n
	if shared < len(c.starts) {
		at = c.starts[shared]
	}
	return at + bits.LeadingZeros64(own^other)
}

// push encodes the next byte.
func (c *cutter) push() {
	i := len(c.starts)
	c.starts = append(c.starts, c.path.n)
	l := c.letters[c.key[i]]
	c.path.push(l.code(), int(l.len()))
}

// encode makes the code have at least end bits.
func (c *cutter) encode(end int) {
	for c.path.n < end && len(c.starts) < len(c.key) {
		c.push()
	}
	c.path.reserve(end)
}

// A path is a string of bits, the first the highest of its word, with zeros behind.
type path struct {
	words []uint64
	n     int
}

func (p *path) truncate(n int) {
	p.words, p.n = p.words[:(n+wordBits-1)/wordBits], n
	if off := n % wordBits; off != 0 {
		p.words[n/wordBits] &^= ^uint64(0) >> off
	}
}

// push appends the n highest bits of x, behind which x is zero; at most 16.
func (p *path) push(x uint64, n int) {
	p.reserve(p.n + n)
	i, off := p.n/wordBits, p.n%wordBits
	p.words[i] |= x >> off
	if off+n > wordBits {
		p.words[i+1] = x << (wordBits - off)
	}
	p.n += n
}

// reserve makes room for n bits, which are zeros beyond the path's own.
func (p *path) reserve(n int) {
	for len(p.words)*wordBits < n {
		p.words = append(p.words, 0)
	}
}

// from returns the 64 bits at bit at.
func (p *path) from(at int) uint64 {
	i, off := at/wordBits, at%wordBits
	w := p.words[i] << off
	if i+1 < len(p.words) {
		w |= p.words[i+1] >> 1 >> (wordBits - 1 - off)
	}
	return w
}
