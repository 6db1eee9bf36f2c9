package cuckootable

import "slices"

// A step is a bucket that a search came to, from a slot of the bucket before.
type step struct {
	bucket uint32
	before int32 // index of the step before; -1 for the place's own buckets
	slot   uint32
}

// maxSteps bounds the buckets that one search comes to, here and in the scripts, and so the time
// that a script can hold up its server; table_search.lua has the same number.
const maxSteps = 256

// makeRoom puts the fingerprint of a place whose buckets are full into one of them after moving
// others out of the way, each to its other bucket, or says false and moves none. It looks for the
// shortest chain of moves breadth first, then makes the last move first, so that no fingerprint is
// ever without a slot. It comes to no bucket twice, so that each slot on the chain still holds what the
// search saw there.
func (t *Table) makeRoom(p Place) bool {
	steps := append(t.steps[:0], step{bucket: p.I, before: -1}, step{bucket: p.J, before: -1})
	defer func() { t.steps = steps }()
	for at := 0; at < len(steps); at++ {
		for slot := range uint32(slots) {
			bucket := steps[at].bucket
			next := t.shape.other(t.at(bucket, slot), bucket)
			if slices.ContainsFunc(steps, func(s step) bool { return s.bucket == next }) {
				continue
			}
			steps = append(steps, step{next, int32(at), slot})
			if t.count(next, 0) != 0 {
				t.put(t.shift(steps), p.Fingerprint)
				return true
			}
			if len(steps) == maxSteps {
				return false
			}
		}
	}
	return false
}

// shift moves one fingerprint along each step of the way to the last one, and returns the bucket
// that the way began with, in which a slot is then free.
func (t *Table) shift(steps []step) uint32 {
	at := steps[len(steps)-1]
	for at.before >= 0 {
		before := steps[at.before]
		t.put(at.bucket, t.at(before.bucket, at.slot))
		t.set(before.bucket, at.slot, 0)
		at = before
	}
	return at.bucket
}
