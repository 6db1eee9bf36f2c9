package rangedel

import (
	"bytes"
	"errors"
	"math"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
)

// A Set holds tombstones as fragments. It is immutable and safe for concurrent use; a nil Set is empty.
//
// It has no pointers but two, however many tombstones there are: a store may have
// hundreds of thousands, and the garbage collector would follow every one of them.
type Set struct {
	keys  []byte
	parts []part // in order of the fragments; those of one fragment side by side, newest first
}

// A part is a tombstone of a fragment: offsets and lengths in Set.keys, and its sequence number.
type part struct {
	start, end       uint64
	startLen, endLen uint32 // endLen noEnd: no bound
	seq              base.SeqNum
}

// NoEnd stands for the end of a tombstone without a bound.
const NoEnd = -1

const (
	noEnd    = math.MaxUint32
	partSize = 32
)

// Empty reports whether the set holds no tombstone.
func (s *Set) Empty() bool { return s == nil || len(s.parts) == 0 }

// Len returns the number of tombstones that Clip returns without bounds.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.parts)
}

// Size returns the bytes that the set takes in memory.
func (s *Set) Size() int {
	if s == nil {
		return 0
	}
	return len(s.keys) + partSize*len(s.parts)
}

// At returns the i-th tombstone, in the order of Clip. It aliases the set.
func (s *Set) At(i int) Tombstone {
	return Tombstone{Start: s.start(i), End: s.end(i), Seq: s.parts[i].seq}
}

func (s *Set) start(i int) []byte {
	p := &s.parts[i]
	return s.keys[p.start : p.start+uint64(p.startLen) : p.start+uint64(p.startLen)]
}

func (s *Set) end(i int) []byte {
	p := &s.parts[i]
	if p.endLen == noEnd {
		return nil
	}
	return s.keys[p.end : p.end+uint64(p.endLen) : p.end+uint64(p.endLen)]
}

// newestAt returns the largest sequence number at or below at of the fragment that begins with tombstone i, or 0. Most
// readers want the first; one of an old state takes O(log n) down a range that is deleted again and again.
func (s *Set) newestAt(i int, at base.SeqNum) base.SeqNum {
	if s.parts[i].seq <= at {
		return s.parts[i].seq
	}
	start := s.start(i)
	passed := func(j int) bool { return s.parts[j].seq <= at || !bytes.Equal(s.start(j), start) }
	step := 1
	for ; i+step < len(s.parts) && !passed(i+step); step *= 2 {
		i += step
	}
	i += 1 + sort.Search(min(step, len(s.parts)-i)-1, func(k int) bool { return passed(i + 1 + k) })
	if i == len(s.parts) || !bytes.Equal(s.start(i), start) {
		return 0
	}
	return s.parts[i].seq
}

// Cover returns the newest sequence number, at or below at, of a tombstone over
// key; 0 if there is none. It takes O(log n).
func (s *Set) Cover(key []byte, at base.SeqNum) base.SeqNum {
	if s.Empty() {
		return 0
	}
	i := s.search(key)
	if i == len(s.parts) || bytes.Compare(s.start(i), key) > 0 {
		return 0
	}
	return s.newestAt(i, at)
}

// Span is Cover that also returns a span around key, of which all keys have the same cover: a fragment, or a gap
// between fragments. A nil start or end has no bound. Keys mostly come in order: near is the place of the last answer,
// 0 before the first, from which the next is mostly a step away.
func (s *Set) Span(key []byte, at base.SeqNum, near *int) (start, end []byte, seq base.SeqNum) {
	if s.Empty() {
		return nil, nil, 0
	}
	i := s.searchNear(key, *near)
	*near = i
	if i < len(s.parts) && bytes.Compare(s.start(i), key) <= 0 {
		return s.start(i), s.end(i), s.newestAt(i, at)
	}
	if i > 0 {
		start = s.end(i - 1)
	}
	if i < len(s.parts) {
		end = s.start(i)
	}
	return start, end, 0
}

// NewestIn returns the newest sequence number of a tombstone over any key of [lo, hi), where a nil hi has no bound; 0
// if there is none. It takes O(log n) and a step for each fragment.
func (s *Set) NewestIn(lo, hi []byte) (seq base.SeqNum) {
	if s.Empty() || (Tombstone{Start: lo, End: hi}).Empty() {
		return 0
	}
	for i := s.search(lo); i < len(s.parts) && CompareEnds(s.start(i), hi) < 0; i++ {
		seq = max(seq, s.parts[i].seq)
	}
	return seq
}

// search returns the first tombstone that ends after key.
func (s *Set) search(key []byte) int {
	// A nil key is the empty key, not an end without a bound.
	return sort.Search(len(s.parts), func(i int) bool { return s.endsAfter(i, key) })
}

func (s *Set) endsAfter(i int, key []byte) bool {
	return s.parts[i].endLen == noEnd || bytes.Compare(s.end(i), key) > 0
}

// maxNear is how many steps searchNear takes before it searches.
const maxNear = 4

// searchNear is search that looks around near first.
func (s *Set) searchNear(key []byte, near int) int {
	if near > 0 && s.endsAfter(near-1, key) {
		return s.search(key)
	}
	for i := near; i < min(near+maxNear, len(s.parts)); i++ {
		if s.endsAfter(i, key) {
			return i
		}
	}
	return s.search(key)
}

// Clip appends to dst the tombstones of the set cut to [lo, hi); nil bounds are open. There is one per fragment and
// sequence number, in order. They alias the set and the bounds. It takes O(log n) and a step for each that it appends.
func (s *Set) Clip(dst []Tombstone, lo, hi []byte) []Tombstone {
	if s.Empty() {
		return dst
	}
	for i := s.search(lo); i < len(s.parts); i++ {
		t := s.At(i)
		if CompareEnds(t.Start, hi) >= 0 {
			break
		}
		if bytes.Compare(t.Start, lo) < 0 {
			t.Start = lo
		}
		if CompareEnds(t.End, hi) > 0 {
			t.End = hi
		}
		if !t.Empty() {
			dst = append(dst, t)
		}
	}
	return dst
}

// Filter returns the set of those tombstones of s that keep reports true for. It shares the keys of s.
func (s *Set) Filter(keep func(Tombstone) bool) *Set {
	if s.Empty() {
		return nil
	}
	kept := &Set{keys: s.keys}
	for i, p := range s.parts {
		if keep(s.At(i)) {
			kept.parts = append(kept.parts, p)
		}
	}
	if len(kept.parts) == 0 {
		return nil
	}
	return kept
}

// A Builder makes a Set of tombstones that are fragments already, as Clip returns them: sorted, those of one span side
// by side and newest first, and spans that do not overlap. It refuses anything else. The zero Builder is ready for Add.
type Builder struct {
	set  Set
	last uint64 // where the key begins that was copied last
}

var errFragments = errors.New("range tombstones overlap or are out of order")

// NewBuilder returns a Builder for n calls of AddAt, more or fewer: all keys are in keys, which the set keeps.
func NewBuilder(keys []byte, n int) *Builder {
	return &Builder{set: Set{keys: keys, parts: make([]part, 0, n)}}
}

// Add adds a tombstone; it copies the keys.
func (b *Builder) Add(t Tombstone) error {
	if err := b.check(t); err != nil {
		return err
	}
	b.add(t)
	return nil
}

// AddAt adds a tombstone from keys[start:startEnd] to keys[end:endEnd]; with end NoEnd it has no upper bound.
func (b *Builder) AddAt(start, startEnd, end, endEnd int, seq base.SeqNum) error {
	p := part{start: uint64(start), startLen: uint32(startEnd - start), endLen: noEnd, seq: seq}
	t := Tombstone{Start: b.set.keys[start:startEnd], Seq: seq}
	if end != NoEnd {
		p.end, p.endLen = uint64(end), uint32(endEnd-end)
		t.End = b.set.keys[end:endEnd]
	}
	if err := b.check(t); err != nil {
		return err
	}
	b.set.parts = append(b.set.parts, p)
	return nil
}

// check reports whether t may follow what is there.
func (b *Builder) check(t Tombstone) error {
	if t.Empty() {
		return errFragments
	}
	n := len(b.set.parts)
	if n == 0 {
		return nil
	}
	last := b.set.At(n - 1)
	if last.End != nil && bytes.Compare(last.End, t.Start) <= 0 {
		return nil
	}
	if !bytes.Equal(last.Start, t.Start) || CompareEnds(last.End, t.End) != 0 || last.Seq <= t.Seq {
		return errFragments
	}
	return nil
}

func (b *Builder) add(t Tombstone) {
	p := part{endLen: noEnd, seq: t.Seq}
	p.start, p.startLen = b.copy(t.Start), uint32(len(t.Start))
	if t.End != nil {
		p.end, p.endLen = b.copy(t.End), uint32(len(t.End))
	}
	b.set.parts = append(b.set.parts, p)
}

// copy returns where a copy of key is. Most tombstones start where the one before ends.
func (b *Builder) copy(key []byte) uint64 {
	if !bytes.Equal(b.set.keys[b.last:], key) {
		b.last = uint64(len(b.set.keys))
		b.set.keys = append(b.set.keys, key...)
	}
	return b.last
}

// Set returns the set: nil if nothing was added. The Builder must not be used again.
func (b *Builder) Set() *Set {
	if len(b.set.parts) == 0 {
		return nil
	}
	if b.set.keys == nil {
		b.set.keys = []byte{} // the empty key is no end without a bound
	}
	return &b.set
}

// FromFragments makes a set of tombstones in the order that Builder asks for.
func FromFragments(ts []Tombstone) (*Set, error) {
	b := Builder{set: Set{parts: make([]part, 0, len(ts))}}
	for _, t := range ts {
		if err := b.Add(t); err != nil {
			return nil, err
		}
	}
	return b.Set(), nil
}
