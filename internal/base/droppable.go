package base

import "encoding/binary"

// Droppable says what rewriting a sorted file would free in blob files, in bytes of their records. It counts entries
// with blob values only: other entries do not matter.
type Droppable struct {
	Overwritten uint64  // of entries under a newer value or tombstone of their key in the file
	Expiring    uint64  // of entries with an expiry
	LastExpiry  uint64  // the latest of these, in microseconds since 1970 UTC
	Octiles     Octiles // of these, by bytes
}

// Expired returns about how many bytes have expired at now.
func (d *Droppable) Expired(now uint64) uint64 {
	return d.Octiles.Expired(d.Expiring, d.LastExpiry, now)
}

// Append appends d as uvarints.
func (d *Droppable) Append(dst []byte) []byte {
	for _, v := range []uint64{d.Overwritten, d.Expiring, d.LastExpiry} {
		dst = binary.AppendUvarint(dst, v)
	}
	return d.Octiles.Append(dst)
}

// Droppable returns what Droppable.Append appended.
func (d *Decoder) Droppable() Droppable {
	return Droppable{Overwritten: d.Uvarint(), Expiring: d.Uvarint(), LastExpiry: d.Uvarint(), Octiles: d.Octiles()}
}
