package kv

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Blob values are read when all keys have their handles: in file order, and neighbours together. Reads that the system
// does not answer from memory run side by side.

// keepHandle is answerApart that leaves the value to readApart, unless there are operands over it.
func (k *multiKey) keepHandle(stored []byte, trailer base.Trailer) error {
	h, expiry, err := values.HandleOf(k.key, stored, trailer.Kind())
	switch {
	case err != nil:
		return err
	case trailer.SeqNum() < k.cover || trailer.Kind().Expires() && expiry <= k.d.now():
		k.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindDelete))
	case k.chain.begun:
		_, err = k.answerApart(stored, trailer)
	default:
		k.apart, k.expiry = &h, expiry
	}
	return err
}

// memtableApart is memtable that leaves a blob value to readApart.
func (k *multiKey) memtableApart(t *memTable) bool {
	var h blob.Handle
	k.stream = &h
	done := k.memtable(t, "")
	if k.stream = nil; h.File != 0 {
		k.apart = &h
	}
	return done
}

// readApart reads the values of keys that have handles.
func (m *multiGet) readApart() {
	a := &m.apart
	for i := range m.keys {
		if k := &m.keys[i]; k.apart != nil && k.err == nil && !k.cachedApart() {
			a.list = append(a.list, apartRead{key: k.key, handle: *k.apart, of: k})
		}
	}
	if len(a.list) == 0 {
		return
	}
	a.sort()
	a.spans = m.d.spansOf(a.spans, m.s.version, a.sorted)
	for i := range a.spans {
		if m.d.tables.Far { // each is a request
			sideBySide(len(a.spans), func(n int) { a.spans[n].readKeys() })
			break
		}
		began := time.Now()
		a.spans[i].readKeys()
		if left := a.spans[i+1:]; len(left) > 1 && time.Since(began) >= deviceWait {
			readBeside(left)
			break
		}
	}
	a.reset()
}

// readBeside reads the values of keys in several goroutines, each of which takes the next span.
func readBeside(spans []apartSpan) {
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(len(spans), maxReads) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(spans)); i = next.Add(1) - 1 {
				spans[i].readKeys()
			}
		})
	}
	readers.Wait()
}

// readKeys reads the values of keys, each into memory of its own.
func (s *apartSpan) readKeys() {
	if len(s.reads) > 1 {
		window := windows.Get().(*[]byte)
		*window = slices.Grow((*window)[:0], int(s.length))
		s.raw = (*window)[:s.length]
		if s.readNow() {
			s.finish(nil)
		}
		for _, r := range s.reads {
			if k := r.of; r.done {
				k.value, k.found, k.owned = append([]byte{}, r.value...), true, true
				k.stripe.Blobs.Count(r.handle)
			}
		}
		windows.Put(window)
	}
	for _, r := range s.reads {
		if !r.done {
			r.of.readApart()
		}
	}
}

// readNow reads the span, and reports whether it did.
func (s *apartSpan) readNow() bool {
	return s.reader.ReadNow(s.raw, s.offset) == vfs.NowDone || s.reader.ReadSpan(s.raw, s.offset) == nil
}

// cachedApart copies the key's value from the cache, and reports whether it is there.
func (k *multiKey) cachedApart() bool {
	r, err := k.d.values.Reader(k.version, k.apart.File)
	if err != nil {
		return false
	}
	value, ok := r.AppendIfCached([]byte{}, k.key, *k.apart)
	if ok {
		k.value, k.found, k.owned = value, true, true
		k.stripe.Blobs.CacheHits.Add(1)
	}
	return ok
}

// readApart reads the key's value.
func (k *multiKey) readApart() {
	k.value, k.err = k.d.appendCached(nil, k.version, k.key, *k.apart, &k.stripe.Blobs)
	if k.found, k.owned = k.err == nil, true; k.value == nil {
		k.value = []byte{} // it is there
	}
}
