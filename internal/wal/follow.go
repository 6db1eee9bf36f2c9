package wal

import (
	"errors"
	"io"
)

// Follow lets Next go on in a log that is being written: past its last record, past a partial one, and past what a
// crash, or a write under way, explains. It reports whether there may be more to read now. After the end of a closed
// log, and after damage, there is not.
func (r *Reader) Follow() (more bool, err error) {
	if r.err == nil {
		return true, nil
	}
	atEnd := errors.Is(r.err, io.EOF)
	if r.clean || !atEnd && !r.CrashExplains(r.err) {
		return false, nil
	}
	size, err := r.r.Size()
	if err != nil || atEnd && size == r.size {
		return false, err
	}
	r.opened = r.off >= fileHeaderSize
	r.size, r.loaded, r.err = size, -1, nil
	r.scanned, r.lastFound = false, -1
	return true, nil
}

// End returns the offset after what Next has read: after a record, of its end.
func (r *Reader) End() int64 { return r.off }
