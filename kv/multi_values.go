package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/values"
)

// Blob values are read when all keys have their handles: in file order, and neighbours together. Reads that the system
// does not answer from memory run side by side.

// readValues reads the values of keys that have handles, each into memory of its own.
func (m *multiGet) readValues() {
	b := &m.blobs
	for i, k := range m.found {
		if k.handle.File != 0 && k.asked.Err == nil && !k.copyCached() {
			b.Reads = append(b.Reads, values.Read{Key: k.key, Handle: k.handle, Owner: i})
		}
	}
	if len(b.Reads) == 0 {
		return
	}
	b.ReadEach(m.d.values, m.s.version, m.d.tables.Far, func(r *values.Read) {
		k := m.found[r.Owner]
		if !r.Done {
			k.value, k.asked.Err = k.d.values.AppendCached([]byte{}, k.version, k.key, r.Handle, &k.stripe.Blobs)
			k.found, k.owned = k.asked.Err == nil, true
			return
		}
		k.value, k.found, k.owned = append([]byte{}, r.Value...), true, true
		k.stripe.Blobs.Count(r.Handle)
	})
	b.Reset()
}

// copyCached copies the key's value from the cache, and reports whether it is there.
func (k *multiKey) copyCached() bool {
	r, err := k.d.values.Reader(k.version, k.handle.File)
	if err != nil {
		return false
	}
	value, ok := r.AppendIfCached([]byte{}, k.key, k.handle)
	if ok {
		k.value, k.found, k.owned = value, true, true
		k.stripe.Blobs.CacheHits.Add(1)
	}
	return ok
}

// sharedValues is how many bytes of values share memory at most.
const sharedValues = 64 << 10

// copyValues puts copies of the values that were found to their positions.
func (m *multiGet) copyValues(values [][]byte) {
	left := 0 // bytes of short values still to be copied
	for _, k := range m.found {
		if k.found && !k.hasOwn() && len(k.value) <= sharedValues/8 {
			left += len(k.value)
		}
	}
	shared := []byte{}
	for _, k := range m.found {
		n := len(k.value)
		switch {
		case !k.found:
		case k.hasOwn():
			values[k.position] = k.value
		case n > sharedValues/8:
			values[k.position] = bytes.Clone(k.value)
		default:
			if n > cap(shared)-len(shared) {
				shared = make([]byte, 0, min(left, sharedValues))
			}
			left -= n
			shared = append(shared, k.value...)
			values[k.position] = shared[len(shared)-n : len(shared) : len(shared)]
		}
	}
}
