package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
)

// CrashExplains reports whether a crash may have caused err, which Next returned: a torn tail, or damage to bytes that
// the log does not prove to have been durable. A disk writes unsynced pages in any order.
func (r *Reader) CrashExplains(err error) bool {
	if errors.Is(err, ErrTornTail) {
		return true
	}
	ce, ok := errors.AsType[*base.CorruptionError](err)
	return ok && ce.Offset >= r.SyncedTo() && !errors.Is(err, ErrNotLog)
}

// Broken reports whether err, which Next returned, says that the log is torn or damaged: Skip then lets Next go on.
func Broken(err error) bool {
	return errors.Is(err, ErrTornTail) || errors.Is(err, base.ErrCorruption)
}

// BrokenAt returns where the record begins that Next, after its last error, could not read.
func (r *Reader) BrokenAt() int64 {
	if r.inside {
		return r.start
	}
	return r.off
}

// Skip drops what Next could not read, and goes to the next whole fragment: the one where the damaged fragment should
// end, or the first of a later block. It reports whether there is one, so that Next can go on. Otherwise it drops the
// rest of the file, and Next returns io.EOF.
//
// Records that were damaged, even in part, are not returned. Skip does nothing,
// and reports false, unless Next has returned a torn tail or damage.
func (r *Reader) Skip() bool {
	if !Broken(r.err) {
		return false
	}
	if err := r.lookAhead(); err != nil {
		r.err = err
		return false
	}
	from, to := r.BrokenAt(), r.resume
	for to < r.size && to <= r.lastFound {
		_, ok, err := r.fragmentAt(to)
		if err == nil && !ok {
			to, err = r.resync(to)
		}
		if err != nil {
			r.err = err
			return false
		}
		if ok {
			break
		}
	}
	if to > r.lastFound {
		to = r.size
	}
	r.skipped += to - from
	r.off, r.inside, r.orphan, r.err = to, false, true, nil
	return to < r.size
}

// damage returns the error for what is at r.off and is no fragment of this log:
// damage if some fragment follows at resume or after it, and else a torn tail.
func (r *Reader) damage(resume int64, what string) error {
	r.resume = resume
	if err := r.lookAhead(); err != nil {
		return err
	}
	if r.lastFound >= resume {
		return base.Corruptf(r.name, r.off, "%s", what)
	}
	return fmt.Errorf("%s: %w at offset %d of %d: %s", r.name, ErrTornTail, r.off, r.size, what)
}

// misplaced returns the error for whole fragments that do not belong together.
func (r *Reader) misplaced(off, resume int64, what string) error {
	r.resume = resume
	if err := r.lookAhead(); err != nil {
		return err
	}
	return base.Corruptf(r.name, off, "%s", what)
}

// lookAhead looks through the file from r.resume, the first time it is called, for the last fragment and for sync
// marks. The findings hold for later damage too: fragments are looked for at the same offsets then.
func (r *Reader) lookAhead() error {
	if r.scanned {
		return nil
	}
	for off := r.resume; off < r.size; {
		if roomAt(off) == 0 {
			off = nextBlock(off)
			continue
		}
		f, ok, err := r.fragmentAt(off)
		if err != nil {
			return err
		}
		if !ok {
			if off, err = r.resync(off); err != nil {
				return err
			}
			continue
		}
		r.lastFound = off
		if f.typ >= typeSynced {
			r.synced = max(r.synced, f.synced())
		}
		off += f.size()
	}
	r.scanned = true
	return nil
}

// resync returns where the next fragment begins, if there is none at off: the next place in the block with one, or else
// the next block. The length field is no guide, since it may be what is damaged.
func (r *Reader) resync(off int64) (int64, error) {
	b, err := r.load(off)
	if err != nil {
		return 0, err
	}
	for at := 1; at+headerSize <= len(b); at++ {
		if _, ok := parseFragment(b[at:], r.id, off+int64(at)); ok {
			return off + int64(at), nil
		}
	}
	return nextBlock(off), nil
}

func (r *Reader) fragmentAt(off int64) (fragment, bool, error) {
	b, err := r.load(off)
	if err != nil {
		return fragment{}, false, err
	}
	f, ok := parseFragment(b, r.id, off)
	return f, ok, nil
}

// faultOf says why b, the rest of a block, does not begin with a fragment.
func faultOf(b []byte) string {
	if allZero(b) {
		return "zeros in place of a log fragment"
	}
	if len(b) < headerSize {
		return "log fragment: header cut short by the end of the file"
	}
	length, typ := int(binary.LittleEndian.Uint16(b[4:])), fragmentType(b[6])
	switch {
	case typ < typeFull || typ > typeEnd:
		return fmt.Sprintf("log fragment: unknown type %d", typ)
	case headerSize+length > len(b):
		return fmt.Sprintf("log fragment: %d bytes of payload, and %d in the block", length, len(b)-headerSize)
	}
	return "log fragment: bad checksum"
}

func allZero(b []byte) bool {
	return len(bytes.TrimLeft(b, "\x00")) == 0
}
