package memtable

import "github.com/siftkv/siftkv/internal/batchrepr"

// A sorter sorts the points of a record. Keys are anywhere in the record, so that reading one is a cache miss. Points
// have eight bytes of their keys with them, as a number, and are sorted by it. Only keys that tie are read again, for
// the next eight bytes: keys of an index share long prefixes, and to compare whole keys reads each some twenty times.
type sorter struct {
	record []byte
	spare  []point // as many as there are points
}

// sort sorts points. The first bytes of their keys, from in number, are equal if shorter keys are padded with zeros.
// The newest version of a key comes first.
func (s *sorter) sort(points []point, from int) {
	ended := 0
	for i, p := range points {
		if key := batchrepr.KeyAt(s.record, int(p.at)); len(key) >= from {
			points[i].word = keyPrefix(key[from:])
		} else {
			p.word = uint64(len(key))<<32 | uint64(^p.number)
			points[i], points[ended] = points[ended], p
			ended++
		}
	}
	s.sortByWord(points[:ended])
	points = points[ended:]
	s.sortByWord(points)
	for len(points) > 0 {
		n := 1
		for n < len(points) && points[n].word == points[0].word {
			n++
		}
		if n > 1 {
			s.sort(points[:n], from+prefixSize)
		}
		points = points[n:]
	}
}

const radixFrom = 48 // see BenchmarkSort

// sortByWord sorts points by their words: by one byte after the other, the last byte first, if they are many.
func (s *sorter) sortByWord(points []point) {
	if len(points) < radixFrom {
		for i := 1; i < len(points); i++ {
			p, at := points[i], i
			for ; at > 0 && points[at-1].word > p.word; at-- {
				points[at] = points[at-1]
			}
			points[at] = p
		}
		return
	}
	differ := uint64(0)
	for i := range points {
		differ |= points[i].word ^ points[0].word
	}
	from, to := points, s.spare[:len(points)]
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var starts [256]uint32
		for i := range from {
			starts[byte(from[i].word>>shift)]++
		}
		at := uint32(0)
		for value, n := range starts {
			starts[value] = at
			at += n
		}
		for _, p := range from {
			start := &starts[byte(p.word>>shift)]
			to[*start] = p
			*start++
		}
		from, to = to, from
	}
	if &from[0] != &points[0] {
		copy(points, from)
	}
}
