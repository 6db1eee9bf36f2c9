package sstable

import (
	"runtime"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// A lookup of many keys asks a file in rounds: the filter for all of them (AskFilter), then the index (Locate), then
// the blocks. Within a round the keys do not depend on each other, so that the processor waits for several cache misses
// at a time. Blocks in the cache are pinned (Pin) and searched in rounds too (FindPinned); of others, each is read once
// for all keys that it may hold (FindInBlock).

// A Lookup is one key of it, and what was found.
type Lookup struct {
	Key  []byte
	Hash uint64      // filterpolicy.Hash(Key)
	At   base.SeqNum // versions above it are not wanted

	// What FindInBlock found. Value is part of the buffer that it appended to.
	Value   []byte
	Trailer base.Trailer
	Found   bool
	Err     error

	Probe Probe // what the lookup did in the file

	loc    location
	reader *Reader // whose block is pinned
	data   []byte  // the block
}

// AskFilter asks the filter for a key, of which hash is filterpolicy.Hash(key), and the memory of its false
// positives, if there is one, behind a "maybe".
func (r *Reader) AskFilter(key []byte, hash uint64) FilterVerdict {
	if r.filter == nil {
		return Unfiltered
	}
	if !r.passesFilter(key, hash) {
		return Negative
	}
	if r.falsePositives.Remembers(key, hash) {
		return Remembered
	}
	return Maybe
}

// Locate asks the index, and returns the number of the only block that may have l's key. It reports false if there is
// none, as the key is after the last one, or if the index could not be read (l.Err). It drops what l has found in
// another file. Filter is what this one's filter said. Wait is called before a part of the index is read from a device
// (Probe.Wait).
func (r *Reader) Locate(l *Lookup, filter FilterVerdict, wait func(begun bool)) (block int, ok bool) {
	return r.locateFor(l, filter, nil, wait)
}

func (r *Reader) locateFor(l *Lookup, filter FilterVerdict, memo *leafMemo, wait func(begun bool)) (block int,
	ok bool) {
	l.Value, l.Trailer, l.Found, l.Err, l.Probe = nil, 0, false, nil, Probe{Filter: filter, IndexLookup: true}
	l.Probe.Wait = wait
	l.loc, ok, l.Err = r.locate(l.Key, true, memo, &l.Probe)
	l.Probe.Wait = nil
	l.Probe.RuledOutByIndex = !ok && l.Err == nil
	return l.loc.block, ok
}

// LocateTogether is Locate for lookups that need the same part of the index: it reads that once, even if the cache does
// not keep it. It reports of each whether there is a block for it.
func (r *Reader) LocateTogether(lookups []*Lookup, filter FilterVerdict) []bool {
	var memo leafMemo
	located := make([]bool, len(lookups))
	for i, l := range lookups {
		_, located[i] = r.locateFor(l, filter, &memo, nil)
	}
	return located
}

// Block returns the number of the block in which l was located.
func (l *Lookup) Block() int { return l.loc.block }

// InMemory reports whether the block of l is in the cache just now.
func (r *Reader) InMemory(l *Lookup) bool { return r.slots[l.loc.block].Filled() }

// ColdLeaf returns the number of the part of the index that Locate needs for key. It reports false if there
// is none, or if it is in the cache.
func (r *Reader) ColdLeaf(key []byte) (leaf int, ok bool) {
	if r.leafBlocks == 0 {
		return 0, false
	}
	leaf = r.index.Find(key)
	ok = leaf < r.index.Len() && !r.slots[r.dataCount+leaf].Filled()
	runtime.KeepAlive(r)
	return leaf, ok
}

// PrefetchLeaf asks the system for a part of the index, without a wait. Locate reads it.
func (r *Reader) PrefetchLeaf(leaf int) {
	r.prefetch(r.index.Block(leaf))
	runtime.KeepAlive(r)
}

// Prefetch asks the system for the block of l, without a wait. FindInBlock reads it.
func (r *Reader) Prefetch(l *Lookup) { r.prefetch(r.place(l.loc)) }

func (r *Reader) prefetch(offset uint64, length int) {
	if r.now == nil || r.closed.Load() {
		return
	}
	raw := blockBuffers.get()
	if cap(*raw) < length {
		*raw = make([]byte, length)
	}
	r.now.ReadNow((*raw)[:length], int64(offset)) // it reads, or begins to
	blockBuffers.put(raw)
}

// Pin pins the block of l in the cache, until FindPinned. It reports false if it is not there.
func (r *Reader) Pin(l *Lookup) (ok bool) {
	l.reader = r
	l.data, ok = r.cache.Pin(&r.slots[l.loc.block])
	return ok
}

// MaxPinned is how many lookups FindPinned takes at a time.
const MaxPinned = 16

// FindPinned is FindInBlock for at most MaxPinned lookups, of any files and blocks, whose
// blocks were pinned. What a lookup waits for are a block's end and then the entry to which
// that leads: here it waits for the ends of all blocks, and then for all entries.
func FindPinned(dst []byte, lookups []*Lookup) []byte {
	var walks [MaxPinned]struct {
		block  block
		probe  slotProbe
		offset int
		err    error
	}
	for _, l := range lookups {
		prefetchTail(l.data)
	}
	for i, l := range lookups {
		w := &walks[i]
		if w.block = viewBlock(l.data); len(w.block.slots) > 0 {
			w.probe = w.block.slots.probe(l.Hash)
			w.offset, w.err = w.block.nextWalk(&w.probe)
		}
	}
	for i, l := range lookups {
		w := &walks[i]
		l.Probe.BlocksFromCache++
		var f found
		switch {
		case w.err != nil:
		case len(w.block.slots) > 0:
			f, w.err = w.block.walk(&w.probe, w.offset, l.Key, l.At)
		default:
			f, w.err = w.block.search(l.Key, l.At)
		}
		var further bool
		dst, further = l.reader.take(dst, l, f, w.err)
		l.reader.slots[l.loc.block].Unpin()
		runtime.KeepAlive(l.reader)
		if l.data = nil; further {
			dst = l.reader.findOne(dst, l)
		}
	}
	return dst
}

// take makes what a block says of l's key its answer, with a copy of the value at the end
// of dst. It reports true if the key's versions go on in the next block.
func (r *Reader) take(dst []byte, l *Lookup, f found, err error) (out []byte, further bool) {
	if err != nil {
		l.Err = r.blockError(l.loc, err)
		return dst, false
	}
	from := len(dst)
	dst, f = f.copied(dst, &l.Probe)
	l.Probe.KeyPresent = f.present
	if !f.present && l.Probe.Filter == Maybe {
		r.falsePositives.Remember(l.Key, l.Hash)
	}
	if !f.ok && f.more && f.present && l.loc.block+1 < r.dataCount {
		return dst, true
	}
	if f.ok && r.seq <= l.At {
		l.Value, l.Trailer, l.Found = slices.Clip(dst[from:]), r.lift(f.trailer), true
	}
	return dst, false
}

// FindInBlock does what Find does after the index, for lookups that were located in one
// block. It appends their values to dst. Other goroutines may search other blocks.
func (r *Reader) FindInBlock(dst []byte, lookups []*Lookup) []byte {
	if r.mapped != nil {
		for _, l := range lookups {
			dst = r.findOne(dst, l)
		}
		return dst
	}
	first := lookups[0]
	h, err := r.hold(dataBlock, first.loc, true, &first.Probe)
	if err != nil {
		for _, l := range lookups {
			l.Err = err
		}
		return dst
	}
	further := 0 // those whose versions go on in the next block, moved to the front
	for n, l := range lookups {
		if n > 0 {
			l.Probe.BlocksFromCache++
		}
		prefetchTail(h.data)
		f, err := viewBlock(h.data).find(l.Key, l.Hash, l.At)
		var goesOn bool
		if dst, goesOn = r.take(dst, l, f, err); goesOn {
			lookups[further] = l
			further++
		}
	}
	h.release()
	runtime.KeepAlive(r)
	for _, l := range lookups[:further] {
		dst = r.findOne(dst, l)
	}
	return dst
}

// findOne looks for one key on its own.
func (r *Reader) findOne(dst []byte, l *Lookup) []byte {
	from := len(dst)
	var t base.Trailer
	var ok bool
	dst, t, ok, l.Err = r.Find(dst, l.Key, l.Hash, l.At, &l.Probe)
	l.Value, l.Trailer, l.Found = slices.Clip(dst[from:]), t, ok
	return dst
}
