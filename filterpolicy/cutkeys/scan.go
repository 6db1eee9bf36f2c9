package cutkeys

import (
	"encoding/binary"
	"math/bits"
)

// A scan goes through the keys of a group. What it reads behind the streams, which no builder
// has written so, has no meaning.
type scan struct {
	streams []byte
	extra   int
	mark    uint64
	end     int // bits of the first key that are kept

	lengths int // where the next length begins in the streams, in bits
	left    int // keys behind this one
	base    int
	rice    uint

	before int // bits that the key has in common with the one before it
	after  int // and with the one behind it
	tail   int // where its tail begins in the streams, in bits
	size   int // bits of its tail
}

// open goes to the first key of a group.
func (s *scan) open(f *Filter, i int) {
	g := f.group(i)
	s.streams, s.extra, s.mark, s.left = f.streams, f.extra, f.mark(i), f.keysOf(i)-1
	s.lengths, s.base, s.rice = int(g.begin())*8, g.base(), g.rice()
	s.tail = int(g.begin()+g.lengths()) * 8
	s.before = s.decode()
	s.after = s.decode()
	s.end = max(s.before, s.after) + 1 + s.extra
	s.size = max(0, s.end-wordBits)
}

func (s *scan) decode() int {
	x := littleEndian(s.streams, min(s.lengths>>3, len(s.streams)-wordLen)) >> (s.lengths & 7)
	low := x & (1<<s.rice - 1)
	x >>= s.rice
	zeros := bits.TrailingZeros64(x | 1<<escapeZeros)
	if zeros == escapeZeros {
		s.lengths += int(s.rice) + escapeZeros + escapeBits
		return s.base + signed(x>>escapeZeros&(1<<escapeBits-1)<<s.rice|low)
	}
	s.lengths += int(s.rice) + zeros + 1
	return s.base + signed(uint64(zeros)<<s.rice|low)
}

// signed is the inverse of numbered.
func signed(z uint64) int { return int(z>>1 ^ -(z & 1)) }

// A place is where a bound is, relative to a key.
type place int

const (
	below  place = iota // before the key's interval
	inside              // in the key's interval
	behind              // behind the intervals of all keys of the group
)

// seek goes to the first key with an interval that does not end before lo. lo must not be before the first key's
// interval. If lo is below that interval, s.before is the bits that lo has in common with the key, and the tail what
// follows behind the next bit.
//
// Keys ascend, and lo is above those that were passed. The last of them has p bits in common with lo, and then a
// zero where lo has a one. If the next key has more bits than p in common with the last, it is below lo
// as well. If it has fewer, it has a one where both others have a zero, and is above. If it has as many, it has a
// one there too, and the bits behind it tell.
func (s *scan) seek(lo *bound) place {
	p := bits.LeadingZeros64(lo.first ^ s.mark)
	if p >= min(s.end, wordBits) {
		same, _ := s.compare(lo, wordBits)
		if same == s.size {
			return inside
		}
		p = wordBits + same
	}
	for s.left > 0 {
		s.pass(p)
		if s.before > p {
			break
		}
		if s.before < p {
			return below
		}
		same, above := s.compare(lo, p+1)
		if same == s.size {
			return inside
		}
		p += 1 + same
		if above {
			s.before, s.tail, s.size = p, s.tail+same+1, s.size-same-1
			return below
		}
	}
	return behind
}

// pass goes on to the next key that has no more than p bits in common with the one before it, or else to the last.
//
// It is most of a query's time, so lengths are taken from a word as long as those that are usual are whole in it.
func (s *scan) pass(p int) {
	length, rises, left, base, rice := s.after, 0, s.left, s.base, s.rice&15
	for left > 1 && length > p {
		x := littleEndian(s.streams, min(s.lengths>>3, len(s.streams)-wordLen)) >> (s.lengths & 7)
		used := uint(0)
		for used < wordBits-7-escapeZeros-maxRice && left > 1 && length > p {
			low := x & (1<<rice - 1)
			x >>= rice
			zeros := uint(bits.TrailingZeros64(x | 1<<escapeZeros))
			if zeros == escapeZeros {
				break
			}
			x = x >> (zeros & 63) >> 1
			used += rice + zeros + 1
			next := base + signed(uint64(zeros)<<rice|low)
			rises += max(0, next-length)
			length = next
			left--
		}
		s.lengths += int(used)
		if used == 0 {
			next := s.decode()
			rises += max(0, next-length)
			length = next
			left--
		}
	}
	s.tail += s.size + rises + (s.left-left)*s.extra
	s.left = left - 1
	s.before, s.after = length, s.decode()
	s.size = max(0, s.after-length) + s.extra
}

// compare returns how many bits of the tail equal those of a bound beginning at bit at, and if not
// all do, whether the tail is above it.
func (s *scan) compare(b *bound, at int) (same int, above bool) {
	for same < s.size {
		i := (s.tail + same) >> 3
		if uint(i) > uint(len(s.streams)-wordLen) { // below 0, too: the sum of absurd lengths may not fit
			return s.size, false
		}
		x := binary.BigEndian.Uint64(s.streams[i:]) << ((s.tail + same) & 7)
		n := min(s.size-same, tailStep)
		var y uint64
		if at+same+n <= wordBits {
			y = b.first << (at + same)
		} else {
			y = b.from(at + same)
		}
		if equal := bits.LeadingZeros64(x ^ y); equal < n {
			return same + equal, x > y
		}
		same += n
	}
	return same, false
}

// beginsBelow reports whether the interval of the key that seek has found above lo begins below hi. Both are
// below hi where they part from it, or hi is below the key where the key parts from lo, or the tail tells.
func (s *scan) beginsBelow(lo, hi *bound) bool {
	if hi == nil {
		return true
	}
	same := lo.common(hi, s.before+1)
	if same != s.before {
		return same < s.before
	}
	return s.tailBelow(hi, same+1)
}

// tailBelow reports whether the tail, and zeros after it, are below a bound beginning at bit at.
func (s *scan) tailBelow(b *bound, at int) bool {
	same, above := s.compare(b, at)
	if same < s.size {
		return !above
	}
	return !b.zeroFrom(at + same)
}
