package sstable

import (
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// An iterator for keys alone copies blocks without their long values. Each entry keeps its position, header, key and
// expiry; the buffer's bytes of the value are left as they were.

// leastLeftOut is how long a value has to be to be left out, in bytes: an entry is decoded for it, which
// takes as long as a copy of some hundred bytes.
const leastLeftOut = 256

// copyBlock copies a block into the iterator's buffer.
func (i *Iter) copyBlock(data []byte) {
	if i.keysOnly {
		i.data = copyKeys(i.data, data)
		return
	}
	i.data = append(i.data[:0], data...)
}

// copyKeys copies a block over dst without its long values, if the first one is long; the others
// are then taken to be, too.
func copyKeys(dst, data []byte) []byte {
	entries := viewBlock(data).entries
	var e entry
	if !decodeEntry(entries, 0, &e) || e.valueLen < leastLeftOut {
		return append(dst[:0], data...)
	}
	dst = slices.Grow(dst[:0], len(data))[:len(data)]
	at := 0
	for at < len(entries) && decodeEntry(entries, at, &e) {
		end := e.next()
		if e.valueLen >= leastLeftOut {
			end = e.valueAt()
			if e.trailer.Kind() == base.KindSetTTL {
				end += base.ExpirySize
			}
		}
		copy(dst[at:end], data[at:end])
		at = e.next()
	}
	copy(dst[at:], data[at:]) // what follows the entries, and what is malformed
	return dst
}
