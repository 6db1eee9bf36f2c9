package kv

import (
	"errors"
	"io/fs"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/wal"
)

// A log may have handles of values in two kinds of blob files.
//
// One that SetReader has made was synced before its handle was written: if it is missing, or has no end, that is
// damage, which no crash explains. The memtable holds it.
//
// The blob file of a log (Options.SeparateAtCommit) was written together with it. Values that are not known to have
// been synced may be torn: the log ends where a value is not whole. The values are put in the place of their handles,
// so that what is recovered is in files that are whole. The file of the log is removed.

// A heldIn is a blob file, by its number, that a memtable holds.
type heldIn struct {
	m    *memTable
	file uint64
}

// holdBlobs has a memtable hold the blob files that a record's handles refer to.
func (p *replayer) holdBlobs(m *memTable, record []byte) error {
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return err
		}
		if !e.Key.Kind().Apart() {
			continue
		}
		h, _, err := handleOf(e.Key.User, e.Value, e.Key.Kind())
		if err != nil {
			return err
		}
		b, err := p.d.findHeld(e.Key.User, h)
		if err != nil {
			return &blobError{cause: missingBlob(p.d.blobPath(h.File), err)}
		}
		if p.holding[heldIn{m, h.File}] {
			b.Release()
			continue
		}
		if p.holding == nil {
			p.holding = map[heldIn]bool{}
		}
		p.holding[heldIn{m, h.File}] = true
		m.Hold(b, h.Length)
	}
	return nil
}

// inline returns a record with the values of its log's blob file in the place of their handles. Its first write has
// the given number. The record is valid until the next call.
func (p *replayer) inline(record []byte, seq base.SeqNum) ([]byte, error) {
	p.values.Reset()
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return nil, err
		}
		kind := e.Key.Kind()
		if !kind.Apart() {
			p.values.Add(kind, e.Key.User, e.Value)
			continue
		}
		h, expiry, err := handleOf(e.Key.User, e.Value, kind)
		if err != nil {
			return nil, err
		}
		f, err := p.fileOf(h.File)
		if err != nil {
			return nil, &blobError{cause: err}
		}
		if f == nil {
			p.values.Add(kind, e.Key.User, e.Value)
			continue
		}
		var value []byte
		if expiry > 0 {
			value = base.AppendExpiry(nil, expiry)
		}
		if value, err = f.append(value, e.Key.User, h); err != nil {
			return nil, &blobError{cause: err, torn: errors.Is(err, ErrCorruption)}
		}
		p.values.Add(inlineKind(kind), e.Key.User, value)
	}
	return p.values.Seal(seq), nil
}

// A logValuesFile is the blob file of a log that is replayed.
type logValuesFile struct {
	*blob.Reader
	name string
	next int64 // where the next record begins at the earliest
}

// append appends the value of key that the next handle of the log refers to. Handles refer to one record after the
// other, and records are not compressed: what is replayed has no more bytes than the files.
func (f *logValuesFile) append(dst, key []byte, h blob.Handle) ([]byte, error) {
	if h.Offset < f.next || h.Size > h.Length {
		return dst, base.Corruptf(f.name, h.Offset, "a log has a handle of %d bytes there, of a value of %d: its "+
			"records are not compressed, and the next one begins at %d", h.Length, h.Size, f.next)
	}
	dst, err := f.AppendValue(dst, key, h)
	if err == nil {
		f.next = h.Offset + h.Length
	}
	return dst, err
}

// fileOf returns a log's blob file; nil if it is another one.
func (p *replayer) fileOf(num uint64) (*logValuesFile, error) {
	if f, ok := p.files[num]; ok {
		return f, nil
	}
	name := p.d.blobPath(num)
	f, err := p.d.openFile(name)
	if err != nil {
		return nil, missingBlob(name, err)
	}
	size, err := f.Size()
	var r *blob.Reader
	byCommit := false
	if err == nil {
		r, byCommit, err = blob.OpenUnfinished(f, size, blob.ReaderOptions{Name: name, Hint: p.d.hint()})
	}
	var values *logValuesFile
	if err == nil && byCommit {
		values = &logValuesFile{Reader: r, name: name}
	} else {
		_ = f.Close() // it was only read
	}
	if err != nil {
		return nil, err
	}
	if p.files == nil {
		p.files = map[uint64]*logValuesFile{}
	}
	p.files[num] = values
	return values, nil
}

// closeFiles closes what fileOf opened.
func (p *replayer) closeFiles() {
	for _, f := range p.files {
		if f != nil {
			_ = f.Close() // it was only read
		}
	}
	p.files = nil
}

// mayEndAt reports whether the log may end before the record that was just read and could not be replayed. It may if
// the record's values are not whole, it is not proved to have been synced, and the mode takes that for the trace of a
// crash.
func (p *replayer) mayEndAt(r *wal.Reader, log uint64, err error) bool {
	if b, ok := errors.AsType[*blobError](err); !ok || !b.torn {
		return false
	}
	if p.d.opts.RecoveryMode != PointInTime && p.d.opts.RecoveryMode != TolerateTornTail {
		return false
	}
	c, err := p.d.examineLog(log)
	if err != nil || r.Offset() < c.syncedTo {
		return false
	}
	return p.d.opts.RecoveryMode == PointInTime || r.Offset() == c.lastRecord
}

// A blobError is an error of a value that a log has a handle of.
type blobError struct {
	cause error
	torn  bool // the value is not whole in the file of a log, whose name and header were durable before the handle
}

func (e *blobError) Error() string { return e.cause.Error() }
func (e *blobError) Unwrap() error { return e.cause }

// missingBlob returns the error for a blob file that a log has handles of, and that cannot be opened: one that is not
// there is damage. It is no ErrStale for a follower, which cannot have the file in its view yet.
func missingBlob(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &CorruptionError{File: name, Offset: -1, What: "a log has handles of its values", Cause: fs.ErrNotExist}
}

// dropAll drops memtables that did not come into use.
func dropAll(mems []*memTable) {
	for _, m := range mems {
		m.Drop()
	}
}
