package fingerprint

import "github.com/siftkv/siftkv/filterpolicy/internal/mix"

// A View is an array as a probe needs it. Its fields are there to be read: the
// families' probes are too short for a call.
type View struct {
	Array []byte
	Bits  uint64 // of a fingerprint; 0 in the filter of no keys
	Salt  uint64 // what the seed changes in a hash
}

// Over makes v the view of an array of so many cells, or says false if it is none.
func (v *View) Over(array []byte, cells, bits uint64, seed uint32) bool {
	v.Array, v.Bits, v.Salt = array, bits, uint64(seed)*mix.Golden
	if cells == 0 {
		v.Bits = 0
		return len(array) == 0 && Valid(bits)
	}
	return Holds(array, cells, bits)
}
