package sstable

import (
	"runtime"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// A lookup of many keys asks a file in three rounds: the filter for all of them
// (Admits), then the index (Locate), then each block for all keys that it may hold
// (FindInBlock). Within a round the keys do not depend on each other, so that the
// processor waits for several cache misses at a time, and a block is fetched once.

// A Want is one key of such a lookup, and what was found of it.
type Want struct {
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

// Admits asks the filter, and reports whether w's key may be in the file. It makes w
// ready for the file: what was found in another is forgotten.
func (r *Reader) Admits(w *Want) bool {
	w.Value, w.Trailer, w.Found, w.Err, w.Probe = nil, 0, false, nil, Probe{}
	if r.filter == nil {
		return true
	}
	if !r.mayContain(w.Key, w.Hash) {
		w.Probe.Filter = Negative
		return false
	}
	w.Probe.Filter = Maybe
	return true
}

// Locate asks the index, and returns the number of the only block that may have w's
// key. It reports false if there is none, as the key is behind the last one, or if the
// index could not be read (w.Err).
func (r *Reader) Locate(w *Want) (block int, ok bool) {
	w.Probe.IndexLookup = true
	w.loc, ok, w.Err = r.locate(w.Key, true, nil, &w.Probe)
	w.Probe.RuledOutByIndex = !ok && w.Err == nil
	return w.loc.block, ok
}

// InMemory reports whether the block of w needs no read just now.
func (r *Reader) InMemory(w *Want) bool { return r.mapped != nil || r.slots[w.loc.block].Filled() }

// FindInBlock does what Find does after the index, for wants that were located in one
// block. It appends their values to dst. Other goroutines may search other blocks.
func (r *Reader) FindInBlock(dst []byte, wants []*Want) []byte {
	if r.mapped != nil {
		for _, w := range wants {
			dst = r.findWant(dst, w)
		}
		return dst
	}
	first := wants[0]
	h, err := r.hold(dataBlock, first.loc, true, &first.Probe)
	if err != nil {
		for _, w := range wants {
			w.Err = err
		}
		return dst
	}
	further := 0 // wants whose versions go on in the next block, moved to the front
	for n, w := range wants {
		if n > 0 {
			w.Probe.BlocksFromCache++
		}
		s := search{key: w.Key, hash: w.Hash, at: w.At}
		from := len(dst)
		var f found
		if dst, f, err = s.in(h.data, dst, &w.Probe); err != nil {
			w.Err = r.blockError(w.loc, err)
			continue
		}
		w.Probe.KeyPresent = f.present
		if !f.ok && f.more && f.present && w.loc.block+1 < r.dataCount {
			wants[further] = w
			further++
			continue
		}
		w.take(r, dst[from:], f.trailer, f.ok)
	}
	h.release()
	runtime.KeepAlive(r)
	for _, w := range wants[:further] {
		dst = r.findWant(dst, w)
	}
	return dst
}

// findWant looks for one key on its own.
func (r *Reader) findWant(dst []byte, w *Want) []byte {
	from := len(dst)
	var t base.Trailer
	var ok bool
	dst, t, ok, w.Err = r.Find(dst, w.Key, w.Hash, w.At, &w.Probe)
	w.Value, w.Trailer, w.Found = slices.Clip(dst[from:]), t, ok
	return dst
}

// take takes what a block says.
func (w *Want) take(r *Reader, value []byte, t base.Trailer, ok bool) {
	if !ok || r.seq > w.At {
		return
	}
	w.Value, w.Trailer, w.Found = slices.Clip(value), r.lift(t), true
}
