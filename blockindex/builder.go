package blockindex

import (
	"encoding/binary"

	"github.com/siftkv/siftkv/internal/base"
)

// A Builder collects the separators of consecutive blocks. Call order: Reset Add* Append. The zero Builder is an index
// that begins with block 0 at offset 0. It is not safe for concurrent use.
type Builder struct {
	first  int
	start  uint64
	seps   []byte // separators, one after the other
	sepEnd []int
	ends   []uint64
}

// Reset empties the builder for an index that begins with block number first at offset start.
func (b *Builder) Reset(first int, start uint64) {
	b.first, b.start = first, start
	b.seps, b.sepEnd, b.ends = b.seps[:0], b.sepEnd[:0], b.ends[:0]
}

// Add appends a block that ends at file offset end. Separators must not
// decrease and ends must increase; Add copies the separator.
func (b *Builder) Add(separator []byte, end uint64) {
	b.seps = append(b.seps, separator...)
	b.sepEnd = append(b.sepEnd, len(b.seps))
	b.ends = append(b.ends, end)
}

// Len returns the number of blocks added.
func (b *Builder) Len() int { return len(b.ends) }

// Size returns about how many bytes Append will append.
func (b *Builder) Size() int { return headerSize + len(b.ends)*entrySize + len(b.seps) }

// Append appends the encoded index to dst.
func (b *Builder) Append(dst []byte) []byte {
	n := len(b.ends)
	common := b.common()
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.first))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(common)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.seps)-n*len(common)))
	dst = binary.LittleEndian.AppendUint64(dst, b.start)
	dst = append(dst, common...)
	for i := range n {
		dst = binary.LittleEndian.AppendUint64(dst, prefixOf(b.separator(i)[len(common):]))
	}
	for _, end := range b.ends {
		dst = binary.LittleEndian.AppendUint64(dst, end)
	}
	for i, end := range b.sepEnd {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(end-(i+1)*len(common)))
	}
	for i := range n {
		dst = append(dst, b.separator(i)[len(common):]...)
	}
	return dst
}

func (b *Builder) separator(i int) []byte {
	from := 0
	if i > 0 {
		from = b.sepEnd[i-1]
	}
	return b.seps[from:b.sepEnd[i]]
}

// common returns what all separators begin with: in a sorted run, what the first and the last begin with.
func (b *Builder) common() []byte {
	if len(b.ends) == 0 {
		return nil
	}
	first := b.separator(0)
	return first[:base.CommonPrefix(first, b.separator(len(b.ends)-1))]
}

// AppendSeparator appends to dst a short key s with last <= s < next, where last is the last key of a block and next
// the first of the following one. If the two are equal (versions of one key, cut by the block's end), or there is no
// shorter key between, s is last. A nil next means that nothing follows.
func AppendSeparator(dst, last, next []byte) []byte {
	if next == nil {
		return appendSuccessor(dst, last)
	}
	c := base.CommonPrefix(last, next)
	if c >= len(last) || c >= len(next) {
		return append(dst, last...)
	}
	// last and next part at byte c, where last is less. One byte after last's
	// is a separator if it is still less than next's, or ends before next does.
	if last[c]+1 < next[c] || c+1 < len(next) && last[c] < next[c] {
		if c+1 < len(last) {
			dst = append(dst, last[:c]...)
			return append(dst, last[c]+1)
		}
	}
	return append(dst, last...)
}

// appendSuccessor appends a short key that is at least last.
func appendSuccessor(dst, last []byte) []byte {
	for i, c := range last {
		if c != 0xff {
			return append(append(dst, last[:i]...), c+1)
		}
	}
	return append(dst, last...)
}
