package base

import "encoding/binary"

// Octiles say when the values of a file expire: the i-th (from 0) is a moment, in microseconds since 1970 UTC, at which
// about i+1 eighths of them have. The last eighth is the latest expiry, which is in another field. All are zero in a
// file without such values, and in one by a writer that knew the latest expiry alone.
type Octiles [7]uint64

// Expired returns about how many of count values, of which the last expires at last, have expired at now. It takes an
// eighth for expired when all of it has: what it returns is never too large by more than the error of the sample that
// the octiles are from.
func (o *Octiles) Expired(count, last, now uint64) uint64 {
	if last <= now {
		return count
	}
	for i := len(o); i > 0; i-- {
		if o[i-1] != 0 && o[i-1] <= now {
			return count/8*uint64(i) + count%8*uint64(i)/8
		}
	}
	return 0
}

// Append appends the octiles as uvarints: the first, and the differences of the others.
func (o *Octiles) Append(dst []byte) []byte {
	before := uint64(0)
	for _, moment := range o {
		dst = binary.AppendUvarint(dst, moment-before)
		before = moment
	}
	return dst
}

// Octiles returns what Octiles.Append appended.
func (d *Decoder) Octiles() (o Octiles) {
	before := uint64(0)
	for i := range o {
		o[i] = before + d.Uvarint()
		d.Bad = d.Bad || o[i] < before
		before = o[i]
	}
	return o
}
