package cache

import "github.com/siftkv/siftkv/internal/offheap"

// A ring is the memory of a shard, used as a circular log: new blocks go where the oldest ones are taken out, so that
// blocks of any size fit without holes.
//
//	base            head      oldest               limit
//	| newest blocks | free ... | oldest blocks      |
//
// The hand of the clock is the oldest block: it is evicted, or, if it was read since it was written, moved down to the
// head and is the newest again. The shard's lock guards all of it except the slots' words, on which readers pin.
type ring struct {
	base, units uint32 // the shard's part of the memory
	limit       uint32 // of it is used, at most units
	head        uint32 // relative to base
	queue       entryQueue

	used    int64 // units of blocks that can be found
	blocks  int
	written bool   // there was a block
	missed  uint32 // units of the blocks that admits was asked for
}

// An entry is a block's place. It is the slot's block only if the slot's word agrees; a block that was dropped leaves
// its entry behind until the hand passes.
type entry struct {
	slot  *Slot
	owner *Owner
	at    uint32 // in units of the cache's memory
	units uint32
}

// admits reports whether a block that is cheap to read again goes into the ring, and else notes that it was missed. It
// does if more than an eighth of the ring is free, or if it was missed before, and no more than half a ring since.
func (r *ring) admits(slot *Slot, w word, units uint32) bool {
	r.missed += units
	if r.used < int64(r.limit-r.limit/8) || w != 0 && r.missed-w.at() <= r.limit/2 {
		return true
	}
	slot.word.CompareAndSwap(w, makeWord(r.missed, 0))
	return false
}

// maxMoved bounds what one allocation moves, in units, and so how long the lock is held. Marked blocks beyond are
// evicted.
const maxMoved = 1 << 20 >> unitShift

// maxRingPart: a block takes a fourth of the ring at the most.
const maxRingPart = 4

// allocate returns where n units are free. It reports false if n is too large or too much is pinned.
func (r *ring) allocate(mem []byte, n uint32) (at uint32, ok bool) {
	if n > r.limit/maxRingPart {
		return 0, false
	}
	moved := uint32(0)
	for left := r.queue.len(); ; left-- {
		if r.free() >= n {
			return r.base + r.head, true
		}
		if r.queue.len() == 0 || r.front() < r.head {
			r.head = 0 // nothing is past the head: begin again
			if r.free() >= n {
				return r.base, true
			}
		}
		if left <= 0 {
			return 0, false
		}
		moved += r.evictOldest(mem, moved >= maxMoved)
	}
}

// front returns where the oldest entry is, relative to base.
func (r *ring) front() uint32 { return r.queue.front().at - r.base }

// free returns how many units are free at the head.
func (r *ring) free() uint32 {
	end := r.limit
	if r.queue.len() > 0 && r.front() >= r.head {
		end = min(end, r.front())
	}
	return max(end, r.head) - r.head
}

// evictOldest takes the oldest entry off the ring, or makes it the newest. It returns how many units it moved.
func (r *ring) evictOldest(mem []byte, hard bool) (moved uint32) {
	e := r.queue.pop()
	for {
		w := e.slot.word.Load()
		switch {
		case w.empty() || w.at() != e.at:
			return 0 // dropped
		case w&pinMask != 0:
			// It stays where it is, and what is free before it is lost for this turn.
			r.enqueue(e)
			return 0
		case w&mark == 0 || hard:
			if e.slot.word.CompareAndSwap(w, 0) {
				r.forget(w, e.owner)
				offheap.Poison(mem[w.offset() : w.offset()+w.length()])
				return 0
			}
		case e.slot.word.CompareAndSwap(w, w.busy()):
			e.at = r.base + r.head
			to := makeWord(e.at, w.length())
			e.units = unitsOf(w.length())
			copy(mem[to.offset():to.offset()+w.length()], mem[w.offset():w.offset()+w.length()])
			e.slot.word.Store(to)
			r.enqueue(e)
			return e.units
		}
	}
}

// push adds a new block at the head; kept is how many of its units will be kept.
func (r *ring) push(e entry, kept uint32) {
	r.used += int64(kept)
	r.blocks++
	e.owner.add(int64(kept), 1)
	r.written = true
	r.enqueue(e)
}

func (r *ring) enqueue(e entry) {
	r.queue.push(e)
	r.head = e.at - r.base + e.units
}

// forget counts a block out that can no longer be found.
func (r *ring) forget(w word, owner *Owner) {
	units := int64(unitsOf(w.length()))
	r.used -= units
	r.blocks--
	owner.add(-units, -1)
}

// sweep takes out the entries of blocks that were dropped. Free space stays where it is until the hand passes.
func (r *ring) sweep() {
	head := r.head
	for range r.queue.len() {
		e := r.queue.pop()
		if w := e.slot.word.Load(); !w.empty() && w.at() == e.at {
			r.queue.push(e)
		}
	}
	r.head = head
}

// resize changes the limit. It reports whether nothing is past it any more that was there before.
func (r *ring) resize(limit uint32) (shrunk bool) {
	shrunk = limit < r.limit
	r.limit = limit
	if !shrunk {
		return false
	}
	head := r.head
	for range r.queue.len() {
		e := r.queue.pop()
		w := e.slot.word.Load()
		switch {
		case w.empty() || w.at() != e.at:
			continue
		case e.at-r.base+e.units > limit:
			if w&pinMask == 0 && e.slot.word.CompareAndSwap(w, 0) {
				r.forget(w, e.owner)
				continue
			}
			shrunk = false
		}
		r.queue.push(e)
	}
	r.head = head
	return shrunk
}

// An entryQueue is a queue in a circular array.
type entryQueue struct {
	buf   []entry // its length is a power of two
	first int
	n     int
}

func (q *entryQueue) len() int { return q.n }

func (q *entryQueue) front() *entry { return &q.buf[q.first] }

func (q *entryQueue) pop() entry {
	e := q.buf[q.first]
	q.buf[q.first] = entry{}
	q.first = (q.first + 1) & (len(q.buf) - 1)
	q.n--
	return e
}

func (q *entryQueue) push(e entry) {
	if q.n == len(q.buf) {
		next := make([]entry, max(2*len(q.buf), 16))
		n := copy(next, q.buf[q.first:])
		copy(next[n:], q.buf[:q.first])
		q.buf, q.first = next, 0
	}
	q.buf[(q.first+q.n)&(len(q.buf)-1)] = e
	q.n++
}
