package changefeed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A reader reads history from a number on. It reads logs in place: the one that takes writes up to the last write that
// is durable, and the ones before as a whole. Where a log ends, or a write is not the one that follows the last, it
// asks the store what has the next one.
type reader struct {
	store    *Store
	slot     string
	at       base.SeqNum // all up to here was read
	durable  base.SeqNum
	prefixes [][]byte
	passed   int // bytes of commits without writes under the prefixes

	part    manifest.KeptPart // whose log is open
	log     *wal.Reader       // nil: none is
	file    vfs.ReadFile
	pending []byte // a record that was read and is beyond what is durable
	again   uint64 // the log that was opened again, since damage was found
	change  Change
	values  blob.LogFiles
}

// newReader returns a reader for the consumer of a slot.
func newReader(s *Slot, prefixes [][]byte) *reader {
	if len(prefixes) == 0 {
		prefixes = [][]byte{nil} // that of all keys
	}
	r := &reader{store: s.store, slot: s.name, at: s.position, prefixes: prefixes}
	r.values.Hint = s.store.Hint
	r.values.Open = func(num uint64) (vfs.ReadFile, string, error) {
		return r.openFile(manifest.FileName(manifest.FileBlob, num), r.part, r.change.first-1)
	}
	return r
}

// maxPassed bounds the bytes that a reader passes over before it says how far it is.
const maxPassed = 1 << 20

// next returns the next change. It waits for one.
func (r *reader) next(ctx context.Context) (*Change, error) {
	for {
		if err := r.store.Interrupted(ctx); err != nil {
			return nil, err
		}
		if r.at >= r.durable && r.passed > 0 || r.passed >= maxPassed { // the caller waits next, or has waited long
			r.passed = 0
			return r.give(Change{last: r.at}), nil
		}
		if r.at >= r.durable {
			durable, err := r.store.Await(ctx, r.at)
			if err == nil {
				r.durable = durable
				err = r.reconsider()
			}
			if err != nil {
				return nil, err
			}
		}
		c, err := r.read()
		switch {
		case err != nil:
			return nil, err
		case c == nil:
		case c.matches(r.prefixes):
			r.passed = 0
			return c, nil
		default:
			r.passed += 1 + len(c.record)
		}
	}
}

// reconsider gives up a log that another has replaced: writes that failed may follow in it, and have numbers that are
// below what is durable by now.
func (r *reader) reconsider() error {
	if r.log == nil {
		return nil
	}
	part, err := r.store.Locate(r.slot, r.at)
	if err == nil && !r.reads(part) {
		r.closeLog()
	}
	return err
}

// give moves on to a change.
func (r *reader) give(c Change) *Change {
	c.reader = r
	r.at, r.change = c.last, c
	return &r.change
}

// read returns the next commit, or nil if it must look further.
func (r *reader) read() (*Change, error) {
	if r.log == nil {
		part, err := r.store.Locate(r.slot, r.at)
		if err != nil {
			return nil, err
		}
		if part.Log == 0 {
			return r.ingested(part), nil
		}
		if err := r.open(part); errors.Is(err, errReplaced) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	for {
		record, err := r.record()
		if _, inParts := r.file.(*partFile); inParts && r.again != r.part.Log && errors.Is(err, base.ErrCorruption) {
			r.closeLog() // the reply to a request may have been damaged
			r.again = r.part.Log
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if record == nil {
			return nil, r.atEnd()
		}
		b, err := batchrepr.NewReader(record)
		if err != nil {
			return nil, r.damaged(err)
		}
		last := b.Last()
		if last <= r.at {
			continue
		}
		r.again = 0           // this is beyond where it was
		if b.Seq() > r.at+1 { // the numbers in between are of failed writes, or of an ingest
			part, err := r.store.Locate(r.slot, r.at)
			switch {
			case err != nil:
				return nil, err
			case part.Log == 0:
				r.pending = record
				return r.ingested(part), nil
			case !r.reads(part):
				r.closeLog()
				return nil, nil
			}
		}
		if last > r.durable { // it is not durable yet, or failed
			r.pending = record
			r.at = r.durable
			return nil, nil
		}
		return r.give(Change{first: b.Seq(), last: last, record: record}), nil
	}
}

// atEnd says where history goes on after the end of a log. All that is durable was in the file when it was read. So if
// the next write is in nothing else, there is none up to there.
func (r *reader) atEnd() error {
	part, err := r.store.Locate(r.slot, r.at)
	switch {
	case err != nil:
		return err
	case r.reads(part) && part.Last != base.MaxSeqNum && r.part.Last == base.MaxSeqNum:
		r.part.Last = part.Last // it has ended since it was opened: what it has by now is read as that of one that has
	case r.reads(part):
		r.at = max(r.at, min(part.Last, r.durable))
	default:
		r.closeLog()
	}
	return nil
}

// ingested returns the change that an ingest is.
func (r *reader) ingested(part manifest.KeptPart) *Change {
	return r.give(Change{first: part.Last, last: part.Last, ingest: part.Files})
}

// reads reports whether the log of a part is the one that is open.
func (r *reader) reads(part manifest.KeptPart) bool {
	return part.Log == r.part.Log && part.Copy == r.part.Copy
}

// record returns the next record of the log, or nil at its end for now.
func (r *reader) record() ([]byte, error) {
	if record := r.pending; record != nil {
		r.pending = nil
		return record, nil
	}
	for looked := false; ; looked = true {
		record, err := r.log.Next()
		ended := r.part.Last != base.MaxSeqNum
		switch {
		case err == nil:
			return record, nil
		case !errors.Is(err, io.EOF) && (ended || !r.log.CrashExplains(err)):
			return nil, r.damaged(err)
		case looked && ended && !r.log.Clean():
			return nil, r.damaged(errNoEnd)
		case looked:
			return nil, nil
		}
		// The reader has seen the end that the file had when it was opened, or when Follow was called last.
		if _, err := r.log.Follow(); err != nil {
			return nil, err
		}
	}
}

var errNoEnd = errors.New("it has lost its end")

// damaged makes the error for a log that cannot be read.
func (r *reader) damaged(err error) error {
	name := filepath.Join(r.store.Dir, r.part.LogName())
	if errors.Is(err, fs.ErrNotExist) { // an object shows that it is gone when it is read
		return r.missing(r.part, r.at, name, err)
	}
	torn := wal.Broken(err) && !errors.Is(err, base.ErrCorruption)
	if torn || errors.Is(err, batchrepr.ErrMalformed) || errors.Is(err, errNoEnd) {
		err = &base.CorruptionError{File: name, Offset: r.log.Offset(), Cause: err,
			What: "a log that is kept for slots"}
	}
	return base.WithHint(err, r.store.Hint)
}

// open goes on in the log of a part.
func (r *reader) open(part manifest.KeptPart) error {
	r.closeLog()
	file, name, err := r.openFile(part.LogName(), part, r.at)
	if err != nil {
		return err
	}
	if parts, ok := file.(vfs.PartReader); ok {
		ahead := vfs.Ahead{File: file, Size: math.MaxInt64, Part: max(parts.PartSize(), vfs.FirstWindow), Whole: true}
		if past, ok := file.(vfs.Rereader); ok && r.again == part.Log { // what a cache has may be damaged
			ahead.File = vfs.AgainFile{Rereader: past}
		}
		file = &partFile{file, ahead}
	}
	r.part, r.file, r.log = part, file, wal.NewReader(file, name, part.Log)
	return nil
}

// A partFile is a file of which each read is a request, read from front to back in parts.
type partFile struct {
	vfs.ReadFile
	ahead vfs.Ahead
}

func (f *partFile) ReadAt(p []byte, off int64) (int, error) { return f.ahead.ReadAt(p, off) }

// openFile opens a file of the part that has the first write after number at.
func (r *reader) openFile(name string, of manifest.KeptPart, at base.SeqNum) (f vfs.ReadFile, path string, err error) {
	path = filepath.Join(r.store.Dir, name)
	if f, err = manifest.OpenKept(r.store.FS, path); err != nil {
		err = r.missing(of, at, path, err)
	}
	return f, path, err
}

// errReplaced says that what was read has another place by now.
var errReplaced = errors.New("siftkv: a log was replaced after a failure of the disk: call Changes again")

// missing makes the error for a file that cannot be opened, of the part that has the first write after number at.
func (r *reader) missing(of manifest.KeptPart, at base.SeqNum, name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	part, lost := r.store.Locate(r.slot, at)
	if lost != nil {
		return lost // it was given up meanwhile
	}
	if part.Log != of.Log || part.Copy != of.Copy {
		return fmt.Errorf("%w (%w)", errReplaced, err)
	}
	if why := r.store.ExplainLoss(); why != nil {
		return why
	}
	return base.WithHint(&base.CorruptionError{File: name, Offset: -1, Cause: err,
		What: "a file that is kept for slots is missing"}, r.store.Hint)
}

func (r *reader) closeLog() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
	}
	r.file, r.log, r.pending = nil, nil, nil
}

func (r *reader) close() {
	r.closeLog()
	_ = r.values.Close() // it was only read
}

// matches reports whether the change has writes of keys that begin with one of the prefixes, and limits it to these.
func (c *Change) matches(prefixes [][]byte) bool {
	if c.prefixes = prefixes; c.ingest != nil {
		return true
	}
	for e, err := range batchrepr.All(c.record) {
		if err != nil || c.wants(e) {
			return true // Replay returns the error
		}
	}
	return false
}

// wants reports whether the change's prefixes admit a write.
func (c *Change) wants(e batchrepr.Entry) bool {
	if e.Key.Kind() == base.KindRangeDelete {
		end, err := rangedel.DecodeEnd(e.Value)
		return err != nil || c.wantsRange(e.Key.User, end)
	}
	return slices.ContainsFunc(c.prefixes, func(prefix []byte) bool {
		return bytes.HasPrefix(e.Key.User, prefix)
	})
}

// wantsRange is wants of a deleted range: whether keys of it may have one of the prefixes.
func (c *Change) wantsRange(lo, hi []byte) bool {
	return slices.ContainsFunc(c.prefixes, func(prefix []byte) bool {
		before := hi != nil && bytes.Compare(hi, prefix) <= 0
		return bytes.HasPrefix(lo, prefix) || bytes.Compare(lo, prefix) < 0 && !before
	})
}
