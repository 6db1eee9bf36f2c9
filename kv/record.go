package kv

import "github.com/siftkv/siftkv/internal/base"

// DecodeRecord calls f with every write of a record of a WAL, in order. A range
// delete's value is its end, as on disk. The slices alias the record. It is for
// tools that look into logs; a record that is malformed is an error after the
// writes before the fault.
func DecodeRecord(record []byte, f func(k base.InternalKey, value []byte) error) error {
	r, err := readBatch(record)
	if err != nil {
		return err
	}
	for {
		e, ok, err := r.next()
		if err != nil || !ok {
			return err
		}
		if err := f(e.key, e.value); err != nil {
			return err
		}
	}
}
