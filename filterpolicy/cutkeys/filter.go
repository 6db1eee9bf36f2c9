package cutkeys

import (
	"bytes"
	"encoding/binary"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// A Filter is a read-only view of a filter's bytes, with the codes of its alphabet, 1 KiB. Any number of
// goroutines may ask it.
type Filter struct {
	marks    []byte
	groups   []byte
	streams  []byte // with the padding
	prefix   []byte
	keys     uint64
	extra    int
	alphabet alphabet
}

// Decode checks data, every byte of it, and returns a view of it. The caller must not change data
// while the filter is in use. An error matches the sentinel of corruption.
func Decode(data []byte) (*Filter, error) { return frame.Decode(data, frame.CutKeys, (*Filter).view) }

// view makes f a filter that cannot read out of bounds, or says false.
func (f *Filter) view(cells []byte, footer *frame.Footer) bool {
	groups := footer.Units()
	f.keys, f.extra = footer.Keys(), int(footer.Params())
	if footer.Params() > maxExtra || footer.Seed() != 0 {
		return false
	}
	if groups == 0 {
		return len(cells) == 0
	}
	n := uint64(len(cells))
	if n < wordLen+sizesLen || groups > (n-wordLen-sizesLen)/(2*wordLen) || groups != (f.keys-1)/groupLen+1 {
		return false
	}
	sizes := cells[n-sizesLen:]
	alphabetLen := uint64(binary.LittleEndian.Uint32(sizes))
	prefixLen := uint64(binary.LittleEndian.Uint32(sizes[4:]))
	left := n - sizesLen - 2*groups*wordLen
	if left < alphabetLen+prefixLen+wordLen || left-alphabetLen-prefixLen > maxStreams+wordLen {
		return false
	}
	take := func(size uint64) (part []byte) {
		part, cells = cells[:size:size], cells[size:]
		return part
	}
	f.marks, f.groups, f.streams = take(groups*wordLen), take(groups*wordLen), take(left-alphabetLen-prefixLen)
	letters := take(alphabetLen)
	f.prefix = take(prefixLen)
	return f.ascends() && f.alphabet.load(letters)
}

// ascends reports whether marks and streams are in order, and streams within their bounds.
func (f *Filter) ascends() bool {
	begin, mark := uint64(0), uint64(0)
	for i := range f.len() {
		g := f.group(i)
		if f.mark(i) < mark || g.begin() < begin || i == 0 && g.begin() != 0 || g.rice() > maxRice {
			return false
		}
		mark, begin = f.mark(i), g.begin()+g.lengths()
	}
	return begin <= uint64(len(f.streams)-wordLen)
}

func (f *Filter) len() int { return len(f.marks) / wordLen }

func (f *Filter) mark(i int) uint64 { return littleEndian(f.marks, i*wordLen) }
func (f *Filter) group(i int) group { return group(littleEndian(f.groups, i*wordLen)) }

// littleEndian returns the word of the eight bytes at i.
func littleEndian(data []byte, i int) uint64 {
	return binary.LittleEndian.Uint64(data[i : i+wordLen : i+wordLen])
}

// MayContainRange reports whether a key k with lo <= k < hi may have been added; false is certain. A nil lo is before
// the first key, a nil hi after the last. It allocates nothing. It decodes half a group, and reads as much of the
// bounds as they have in common with keys. If the first keys of many groups have more than 64 bits in common with lo,
// it does that once for each step of a search among these.
func (f *Filter) MayContainRange(lo, hi []byte) bool {
	if f.len() == 0 {
		return false
	}
	low, where := f.behindPrefix(lo)
	if where == over {
		return false
	}
	q := newBound(&f.alphabet, low)
	if hi == nil {
		return f.contains(&q, nil)
	}
	high, where := f.behindPrefix(hi)
	switch where {
	case under:
		return false
	case over:
		return f.contains(&q, nil)
	}
	end := newBound(&f.alphabet, high)
	if end.first < q.first || end.first == q.first && bytes.Compare(low, high) >= 0 {
		return false
	}
	return f.contains(&q, &end)
}

// A side is where a bound is, relative to the keys that begin with the prefix.
type side int

const (
	amid side = iota
	under
	over
)

// behindPrefix returns what is behind the prefix in a bound. If the bound is below all that
// begin with the prefix, that is nothing.
func (f *Filter) behindPrefix(bound []byte) (rest []byte, where side) {
	if bytes.HasPrefix(bound, f.prefix) {
		return bound[len(f.prefix):], amid
	}
	if bytes.Compare(bound, f.prefix) < 0 {
		return nil, under
	}
	return nil, over
}

func (f *Filter) keysOf(i int) int {
	return int(min(groupLen, f.keys-uint64(i)*groupLen))
}
