package wal

import (
	"errors"
	"io"
)

// Follow lets Next go on in a log that somebody else is writing: past its last
// record, past one that is there in part, and past what a write under way
// explains like a crash would. It reports whether there may be more to read now.
// Past the end of a closed log, and past damage, there is not.
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
