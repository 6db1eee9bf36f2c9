package cuckoo

import (
	"math"
	"math/bits"
)

// A layer is one table of a set: a multiset of classes. A class is a fingerprint and its pair of buckets, which is all
// that a table knows of a key. Keys of one class share a bucket only if they share both, so that the copies of a class
// can be counted, and one be removed, without doing harm to any key of another class.
type layer struct {
	table
	used   uint64 // slots in use
	groups uint64 // classes present
	victim place  // a fingerprint that found no slot; none if its fingerprint is 0

	// extra holds further copies, without a slot, of classes that are in the slots or the
	// victim. Only sets that grow have any.
	extra  map[class]uint32
	extras uint64 // the sum of extra
}

// A place is a fingerprint and its two buckets. Fingerprint zero is none.
type place struct {
	fingerprint uint64
	i, j        uint64
}

// A class is a place in which it does not matter which bucket comes first.
type class struct {
	fingerprint uint64
	bucket      uint64 // the lower one
}

func (p place) class() class { return class{p.fingerprint, min(p.i, p.j)} }

// equal reports whether two places are of one class.
func (p place) equal(q place) bool {
	return p.fingerprint == q.fingerprint && (p.i == q.i || p.i == q.j)
}

func (l *layer) placeOf(h uint64) place {
	fingerprint, i := l.locate(h)
	return place{fingerprint, i, l.other(fingerprint, i)}
}

func (l *layer) len() uint64 {
	n := l.used + l.extras
	if l.victim.fingerprint != 0 {
		n++
	}
	return n
}

// capacity returns the number of keys at the safe load.
func (l *layer) capacity() uint64 {
	return l.buckets * l.slots * safeLoad(int(l.slots)) / 100
}

// contains reports whether the class of a hash is there.
func (l *layer) contains(h uint64) bool {
	fingerprint, i := l.locate(h)
	j := l.other(fingerprint, i)
	if l.words != 1 {
		return l.has(i, fingerprint) || l.has(j, fingerprint) || l.victim.equal(place{fingerprint, i, j})
	}
	pattern := fingerprint * l.ones
	return l.zeros(l.word(i)^pattern)|l.zeros(l.word(j)^pattern) != 0 || l.victim.equal(place{fingerprint, i, j})
}

func (l *layer) holds(p place) bool {
	return l.has(p.i, p.fingerprint) || l.has(p.j, p.fingerprint) || l.victim.equal(p)
}

func (l *layer) copies(p place) uint64 {
	n := l.countIn(p.i, p.fingerprint) + l.countIn(p.j, p.fingerprint) + uint64(l.extra[p.class()])
	if l.victim.equal(p) {
		n++
	}
	return n
}

// add adds a class or another copy of it: to a free slot of its buckets, or to one that a search frees, or as the
// victim. If all fails, nothing has changed except the slots of some classes.
func (l *layer) add(p place, path *[]step) error {
	fresh := !l.holds(p)
	if !fresh && l.copies(p) >= 2*l.slots {
		return ErrTooManyCopies
	}
	switch {
	case l.store(p, path):
	case l.victim.fingerprint == 0:
		l.victim = p
	case l.store(l.victim, path):
		l.victim = p
	default:
		return ErrFull
	}
	if fresh {
		l.groups++
	}
	return nil
}

// store puts the fingerprint of a place into a slot, or says false.
func (l *layer) store(p place, path *[]step) bool {
	if l.put(p.i, p.fingerprint) || l.put(p.j, p.fingerprint) || l.makeRoom(p, path) {
		l.used++
		return true
	}
	return false
}

// addCopy adds another copy of a class that is there: to a free slot of its buckets, or aside.
func (l *layer) addCopy(p place) error {
	if l.put(p.i, p.fingerprint) || l.put(p.j, p.fingerprint) {
		l.used++
		return nil
	}
	c := p.class()
	if l.extra[c] == math.MaxUint32 {
		return ErrTooManyCopies
	}
	if l.extra == nil {
		l.extra = map[class]uint32{}
	}
	l.extra[c]++
	l.extras++
	return nil
}

// remove takes away one copy of a class that is there, one of those kept aside first.
func (l *layer) remove(p place) {
	if c := p.class(); l.extra[c] != 0 {
		l.extras--
		if l.extra[c]--; l.extra[c] == 0 {
			delete(l.extra, c)
		}
		return
	}
	switch {
	case l.victim.equal(p):
		l.victim = place{}
	case l.take(p.i, p.fingerprint) || l.take(p.j, p.fingerprint):
		l.used--
	}
	if !l.holds(p) && l.groups != 0 { // a decoded number may be too small
		l.groups--
	}
}

func (l *layer) clear() {
	clear(l.cells)
	*l = layer{table: l.table}
}

// rate returns the probability that the class of a random hash is there: each class is met from two buckets.
func (l *layer) rate() float64 {
	p := Policy{bits: uint8(l.bits), slots: uint8(l.slots)}
	return min(1, p.chance(l.buckets)*float64(l.groups))
}

// equalLanes marks, by their highest bits, the lanes of x that are zero, and no others.
func (s *shape) equalLanes(x uint64) uint64 {
	low := s.tops - s.ones // all bits of a lane but the highest
	return ^(x&low + low | x) & s.tops
}

// countIn returns how often a bucket holds the fingerprint; 0 counts empty slots.
func (t *table) countIn(bucket, fingerprint uint64) (n uint64) {
	pattern := fingerprint * t.ones
	for w := range t.words {
		n += uint64(bits.OnesCount64(t.equalLanes(t.word(bucket*t.words+w) ^ pattern)))
	}
	return n
}

// take empties the first slot of a bucket that holds the fingerprint, or says false.
func (t *table) take(bucket, fingerprint uint64) bool {
	pattern := fingerprint * t.ones
	for w := range t.words {
		i := bucket*t.words + w
		if hits := t.zeros(t.word(i) ^ pattern); hits != 0 {
			t.flip(i, uint64(bits.TrailingZeros64(hits))+1-t.bits, fingerprint)
			return true
		}
	}
	return false
}

func (t *table) at(bucket, slot uint64) uint64 {
	return t.word(bucket*t.words+slot>>t.lanesLog) >> (slot & (1<<t.lanesLog - 1) * t.bits) & t.values
}
