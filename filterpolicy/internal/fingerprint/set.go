package fingerprint

import "encoding/binary"

// Places is where a key's cells are. The fourth counts for those with four only.
type Places [4]uint32

// Set makes the fingerprints of some keys right, the last key first: it sets the
// key's own cell, one of its places, which must be zero until then. A key has three
// or four places.
func Set(array []byte, bits uint64, arity int, zs []uint64, own []uint32, places []Places) {
	if bits == 8 {
		setBytes(array, arity, zs, own, places)
		return
	}
	values := uint64(1)<<bits - 1
	for i := len(zs) - 1; i >= 0; i-- {
		p := &places[i]
		x := word(array, uint64(p[0]), bits) ^ word(array, uint64(p[1]), bits) ^ word(array, uint64(p[2]), bits)
		if arity == 4 {
			x ^= word(array, uint64(p[3]), bits)
		}
		x = (x ^ zs[i]) & values
		at := uint64(own[i]) * bits
		bytes := array[at/8:]
		binary.LittleEndian.PutUint64(bytes, binary.LittleEndian.Uint64(bytes)|x<<(at%8))
	}
}

// setBytes is Set for cells of one byte.
func setBytes(array []byte, arity int, zs []uint64, own []uint32, places []Places) {
	for i := len(zs) - 1; i >= 0; i-- {
		p := &places[i]
		x := array[p[0]] ^ array[p[1]] ^ array[p[2]] ^ byte(zs[i])
		if arity == 4 {
			x ^= array[p[3]]
		}
		array[own[i]] = x
	}
}
