package cuckoo

// A step is a bucket that a search came to, from a slot of the bucket before.
type step struct {
	bucket uint64
	before int32 // index of the step before; -1 for the place's own buckets
	slot   uint32
}

// maxSteps bounds the buckets that one search reads. First refusals come at loads of 0.87, 0.96 and
// 0.99 for two, four and eight slots in tables of a million keys. They come half a point lower in
// those of ten million. Filling one to its capacity takes about one step per key.
const maxSteps = 1024

// makeRoom puts the fingerprint of a place with full buckets into one of them after moving others, each to its other
// bucket. Otherwise it returns false and moves none. It finds the shortest chain of moves breadth first before it moves
// anything, and makes the last move first. So no fingerprint is ever without a slot, and nothing must be undone. The
// shortest chain reaches no bucket twice, so each slot on it still holds what the search saw there.
func (l *layer) makeRoom(p place, path *[]step) bool {
	steps := append((*path)[:0], step{bucket: p.i, before: -1}, step{bucket: p.j, before: -1})
	defer func() { *path = steps }()
	for at := 0; at < len(steps); at++ {
		for slot := range l.slots {
			bucket := steps[at].bucket
			next := l.other(l.at(bucket, slot), bucket)
			if onPath(steps, at, next) {
				continue
			}
			steps = append(steps, step{next, int32(at), uint32(slot)})
			if l.countIn(next, 0) != 0 {
				l.put(l.shift(steps), p.fingerprint)
				return true
			}
			if len(steps) == maxSteps {
				return false
			}
		}
	}
	return false
}

// onPath reports whether a bucket is among those that led to a step, itself
// included: to go there again would be to search in circles, in small tables for long.
func onPath(steps []step, at int, bucket uint64) bool {
	for ; at >= 0; at = int(steps[at].before) {
		if steps[at].bucket == bucket {
			return true
		}
	}
	return false
}

// shift moves one fingerprint along each step of the way to the last one, and
// returns the bucket that the way began with, in which a slot is now free.
func (l *layer) shift(steps []step) uint64 {
	at := len(steps) - 1
	for steps[at].before >= 0 {
		before := steps[steps[at].before].bucket
		fingerprint := l.swap(before, uint64(steps[at].slot), 0)
		l.put(steps[at].bucket, fingerprint)
		at = int(steps[at].before)
	}
	return steps[at].bucket
}
