package tablemeta

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A CandidateError says that a record of a blob file could not be copied because it could not be read.
type CandidateError struct {
	Num   uint64 // of the blob file
	Cause error  // names file and offset
}

func (e *CandidateError) Error() string { return e.Cause.Error() }

func (e *CandidateError) Unwrap() error { return e.Cause }

// Relocated returns how many bytes of records were copied from other blob files.
func (w *Writer) Relocated() uint64 { return w.blobs.relocated }

// relocate copies the record that an entry has a handle of, if a candidate has it. It returns the entry's new value,
// valid until the next call. Entries come in key order and, of one key, the newest first, so records do too.
func (w *Writer) relocate(k base.InternalKey, value []byte) ([]byte, error) {
	h, expiry, err := blob.HandleOf(k.Kind(), value)
	if err != nil || !w.Separation.Candidates[h.File] {
		return value, nil //nolint:nilerr // whether it is a handle at all is for the table's writer to say
	}
	if err := w.nextBlob(); err != nil {
		return nil, err
	}
	s, err := w.Separation.Open(k.User, h)
	if err != nil {
		return nil, &CandidateError{h.File, err}
	}
	b := &w.blobs
	next, err := b.out.Copy(s)
	if err != nil {
		if s.Err() != nil {
			err = &CandidateError{h.File, err}
		}
		return nil, err
	}
	b.relocated += uint64(next.Length)
	b.value = b.value[:0]
	if k.Kind() == base.KindSetTTLSeparated {
		b.value = base.AppendExpiry(b.value, expiry)
	}
	b.value = next.Append(b.value)
	return b.value, nil
}
