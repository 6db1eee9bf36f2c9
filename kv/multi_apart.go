package kv

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/values"
)

// Blob values are read when all keys have their handles: in file order, and neighbours together. Reads that the system
// does not answer from memory run side by side.

// keepHandle is answerApart that leaves the value to readApart, unless there are operands over it.
func (k *multiKey) keepHandle(stored []byte, trailer base.Trailer) error {
	h, expiry, err := values.HandleOf(k.key, stored, trailer.Kind())
	switch {
	case err != nil:
		return err
	case trailer.SeqNum() < k.cover || trailer.Kind().Expires() && expiry <= k.d.clock.now():
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

// readApart reads the values of keys that have handles, each into memory of its own.
func (m *multiGet) readApart() {
	b := &m.blobs
	for i := range m.keys {
		if k := &m.keys[i]; k.apart != nil && k.err == nil && !k.cachedApart() {
			b.Reads = append(b.Reads, values.Read{Key: k.key, Handle: *k.apart, Owner: i})
		}
	}
	if len(b.Reads) == 0 {
		return
	}
	b.ReadEach(m.d.values, m.s.version, m.d.tables.Far, func(r *values.Read) {
		k := &m.keys[r.Owner]
		if !r.Done {
			k.readApart()
			return
		}
		k.value, k.found, k.owned = append([]byte{}, r.Value...), true, true
		k.stripe.Blobs.Count(r.Handle)
	})
	b.Reset()
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
	k.value, k.err = k.d.values.AppendCached(nil, k.version, k.key, *k.apart, &k.stripe.Blobs)
	if k.found, k.owned = k.err == nil, true; k.value == nil {
		k.value = []byte{} // it is there
	}
}
