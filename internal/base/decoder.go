package base

import "encoding/binary"

// A Decoder takes values off the front of Rest. After a malformed one, Bad is set, and all further values are zero.
type Decoder struct {
	Rest []byte
	Bad  bool
}

// Fail makes the rest bad.
func (d *Decoder) Fail() { d.Rest, d.Bad = nil, true }

// Done reports whether all was decoded, and nothing was malformed.
func (d *Decoder) Done() bool { return !d.Bad && len(d.Rest) == 0 }

// Uvarint returns a number.
func (d *Decoder) Uvarint() uint64 {
	v, n := binary.Uvarint(d.Rest)
	if n <= 0 || d.Bad {
		d.Fail()
		return 0
	}
	d.Rest = d.Rest[n:]
	return v
}

// Bytes returns bytes that are preceded by their length, and alias what is decoded.
func (d *Decoder) Bytes() []byte {
	n := d.Uvarint()
	if d.Bad || n > uint64(len(d.Rest)) {
		d.Fail()
		return nil
	}
	v := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return v
}
