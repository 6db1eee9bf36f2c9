package cuckoo

import (
	"encoding/binary"
	"slices"
)

// A semi-sorted filter is the table of four slots per bucket without the order of each bucket's fingerprints: that
// order says nothing, and without it a bucket takes four bits less. A bucket is 4*F-4 bits:
//
//	code    12 bits   the lowest four bits of all fingerprints; see nibbles
//	rest 0  F-4 bits  the other bits of the first fingerprint
//	rest 1  F-4 bits
//	rest 2  F-4 bits
//	rest 3  F-4 bits
//
// The fingerprints are in ascending order of their lowest four bits, those with equal ones in
// ascending order of the rest; an empty slot is the fingerprint zero and comes first. Buckets are
// packed without gaps from the lowest bit of the first byte, and fields from a bucket's lowest bit.
// Seven zero bytes follow, so that any field can be read as a part of eight bytes.
//
// The footer's parameters are F, 4, 1, 0. Fingerprints, buckets and seed are those of the plain
// table, so a semi-sorted filter gives the answers of the plain one of the same hashes.
//
// Source: semi-sorting is from the paper that the package comment names; the order of
// fields and the numbering of codes are this package's own.

const (
	semisortName    = "semisort"
	semisortSlots   = 4
	semisortMinBits = nibbleBits + 1
	semisortParam   = 1 // the third parameter of the footer, which is 0 for plain tables
)

// A sorting is the layout in memory of semi-sorted buckets of fingerprints of F bits. The
// rests of a bucket are read as two words of two.
type sorting struct {
	bits uint64 // of a bucket
	rest uint64 // F-4
	ones uint64 // the lowest bit of each rest in a word
	tops uint64 // the highest bit of each rest in a word
}

// sortings holds every sorting by F; one without bits is none.
var sortings = func() (all [maxBits + 1]sorting) {
	for bits := uint64(semisortMinBits); bits <= maxBits; bits++ {
		all[bits] = newSorting(bits)
	}
	return all
}()

// sortingOf returns the sorting of fingerprints of the given bits, nil if there is none.
func sortingOf(bits uint32) *sorting {
	if bits >= uint32(len(sortings)) || sortings[bits].bits == 0 {
		return nil
	}
	return &sortings[bits]
}

func newSorting(bits uint64) sorting {
	rest := bits - nibbleBits
	ones := uint64(1)<<rest | 1
	return sorting{bits: codeBits + semisortSlots*rest, rest: rest, ones: ones, tops: ones << (rest - 1)}
}

// size returns the bytes of the given number of buckets, with the padding.
func (s *sorting) size(buckets uint64) uint64 { return (buckets*s.bits+7)/8 + padding }

// at returns the bit of a bucket at which a rest begins.
func (s *sorting) at(slot uint64) uint64 { return codeBits + slot*s.rest }

// appendCells appends the buckets of a plain table to dst. The table's fingerprints must have the sorting's F.
func (s *sorting) appendCells(dst []byte, t *table) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, s.size(t.buckets))...)
	cells := dst[start:]
	for bucket := range t.buckets {
		var turned [semisortSlots]uint64 // fingerprints with their lowest bits put on top
		for slot := range turned {
			fingerprint := t.at(bucket, uint64(slot))
			turned[slot] = fingerprint>>nibbleBits | fingerprint&nibbleMask<<s.rest
		}
		slices.Sort(turned[:])
		bit := bucket * s.bits
		orBits(cells, bit, codeOf(turned[0]>>s.rest, turned[1]>>s.rest, turned[2]>>s.rest, turned[3]>>s.rest))
		for slot, x := range turned {
			orBits(cells, bit+s.at(uint64(slot)), x&(1<<s.rest-1))
		}
	}
	return dst
}

// orBits sets the bits of value, at most 57 of them, in cells, beginning at a bit.
func orBits(cells []byte, bit, value uint64) {
	bytes := cells[bit/8:]
	binary.LittleEndian.PutUint64(bytes, binary.LittleEndian.Uint64(bytes)|value<<(bit%8))
}

// from returns the bits of cells beginning at one, at least 57 of them.
func from(cells []byte, bit uint64) uint64 {
	return binary.LittleEndian.Uint64(cells[bit/8:]) >> (bit % 8)
}

// has reports whether a bucket of cells holds the fingerprint, or may: a code that stands for no four values is damage,
// and could have been any. Most buckets without the fingerprint show it by their rests, whatever their code stands for.
func (s *sorting) has(cells []byte, bucket, fingerprint uint64) bool {
	bit := bucket * s.bits
	code := from(cells, bit) & (1<<codeBits - 1)
	pattern := fingerprint >> nibbleBits * s.ones
	x := from(cells, bit+s.at(0)) ^ pattern
	y := from(cells, bit+s.at(2)) ^ pattern
	if ((x-s.ones)&^x|(y-s.ones)&^y)&s.tops == 0 || code >= codes {
		return code >= codes
	}
	// What differs in each slot, zero if nothing does; no branch, as none would be foreseen.
	low, mask := uint64(nibbles[code])^fingerprint&nibbleMask*0x1111, uint64(1)<<s.rest-1
	a := x&mask | low&nibbleMask
	b := x>>s.rest&mask | low>>4&nibbleMask
	c := y&mask | low>>8&nibbleMask
	d := y>>s.rest&mask | low>>12
	return ((a-1)|(b-1)|(c-1)|(d-1))>>63 != 0
}

// There are 3876 ways to choose four values of four bits in ascending order, a <= b
// <= c <= d. Their codes are their ranks by d, then c, then b, then a, which is
//
//	code = C(a,1) + C(b+1,2) + C(c+2,3) + C(d+3,4)
//
// in binomial coefficients: the combinatorial number system. The codes from 3876 to 4095 stand for nothing.

const (
	nibbleBits = 4
	nibbleMask = 1<<nibbleBits - 1
	codeBits   = 12
	codes      = 3876
)

// codeOf returns the code of four values in ascending order, each below 16.
func codeOf(a, b, c, d uint64) uint64 {
	return a + b*(b+1)/2 + c*(c+1)*(c+2)/6 + d*(d+1)*(d+2)*(d+3)/24
}

// nibbles is the inverse of codeOf: the four values of each code, a in the lowest bits. It has an
// entry, zero, for codes that stand for nothing too, so that twelve bits never index past it.
var nibbles = func() (all [1 << codeBits]uint16) {
	for d := range uint64(1 << nibbleBits) {
		for c := range d + 1 {
			for b := range c + 1 {
				for a := range b + 1 {
					all[codeOf(a, b, c, d)] = uint16(a | b<<4 | c<<8 | d<<12)
				}
			}
		}
	}
	return all
}()
