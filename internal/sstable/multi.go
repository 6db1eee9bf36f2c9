package sstable

import (
	"runtime"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// A lookup of many keys asks a file in three rounds: the filter for all of them
// (MayContain), then the index (Locate), then each block for all keys that it may hold
// (FindInBlock). Within a round the keys do not depend on each other, so that the
// processor waits for several cache misses at a time, and a block is fetched once.

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

	loc location
}

// MayContain asks the filter, and reports whether l's key may be in the file. It makes l
// ready for the file: what was found in another is forgotten.
func (r *Reader) MayContain(l *Lookup) bool {
	l.Value, l.Trailer, l.Found, l.Err, l.Probe = nil, 0, false, nil, Probe{}
	if r.filter == nil {
		return true
	}
	if !r.passesFilter(l.Key, l.Hash) {
		l.Probe.Filter = Negative
		return false
	}
	l.Probe.Filter = Maybe
	return true
}

// Locate asks the index, and returns the number of the only block that may have l's
// key. It reports false if there is none, as the key is after the last one, or if the
// index could not be read (l.Err).
func (r *Reader) Locate(l *Lookup) (block int, ok bool) {
	l.Probe.IndexLookup = true
	l.loc, ok, l.Err = r.locate(l.Key, true, nil, &l.Probe)
	l.Probe.RuledOutByIndex = !ok && l.Err == nil
	return l.loc.block, ok
}

// InMemory reports whether the block of l needs no read just now.
func (r *Reader) InMemory(l *Lookup) bool { return r.mapped != nil || r.slots[l.loc.block].Filled() }

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
		s := search{key: l.Key, hash: l.Hash, at: l.At}
		from := len(dst)
		var f found
		if dst, f, err = s.in(h.data, dst, &l.Probe); err != nil {
			l.Err = r.blockError(l.loc, err)
			continue
		}
		l.Probe.KeyPresent = f.present
		if !f.ok && f.more && f.present && l.loc.block+1 < r.dataCount {
			lookups[further] = l
			further++
			continue
		}
		if f.ok && r.seq <= l.At {
			l.Value, l.Trailer, l.Found = slices.Clip(dst[from:]), r.lift(f.trailer), true
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
