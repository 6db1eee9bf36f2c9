package values

import (
	"errors"
	"io/fs"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A log may have handles of values in two kinds of blob files.
//
// A stream was synced before its handle was written: if it is missing, or has no end, that is damage, which no crash
// explains. The memtable holds it.
//
// The blob file of a log was written together with it. Values that are not known to have been synced may be torn: the
// log ends where a value is not whole. The values are put in place of their handles, so that what is recovered is in
// whole files. The file of the log is removed.

// A Replay reads the values that records of replayed logs have handles of.
type Replay struct {
	Store *Store
	// Fault, if set, is called with each error of a value. If it returns nil, Inline reads the values that follow, and
	// its result must not be used. If Fault is nil, Inline returns the first error.
	Fault func(*ValueError) error

	holding map[heldBy]bool
	files   map[uint64]*replayedFile // by number
	record  batchrepr.Writer         // of Inline
}

// A heldBy is a blob file, by its number, that a memtable holds.
type heldBy struct {
	m    *memtable.Memtable
	file uint64
}

// A replayedFile is a blob file that records have handles of.
type replayedFile struct {
	manifest.BlobFile // of a stream

	name   string
	log    *blob.Reader // of a log's file; nil: the file is a stream
	shared bool         // log is that of a store which writes, or wrote, the file
	next   int64        // the minimum offset of the next record of the log's file
	err    error        // why it cannot be read
}

// A ValueError is an error of a value that a log has a handle of.
type ValueError struct {
	Cause error
	Torn  bool // the value is not whole in the file of a log, whose name and header were durable before the handle
}

func (e *ValueError) Error() string { return e.Cause.Error() }
func (e *ValueError) Unwrap() error { return e.Cause }

// CrashExplains reports whether a crash explains the error of a record that begins at an offset of its log. The log
// proves that it was synced up to syncedTo. If so, history may end before that record.
func (e *ValueError) CrashExplains(offset, syncedTo int64) bool { return e.Torn && offset >= syncedTo }

// Inline returns a record, whose first write is number seq, with the values of its log's blob file in place of their
// handles. The result is valid until the next call, unless Give is called.
func (p *Replay) Inline(record []byte, seq base.SeqNum) ([]byte, error) {
	p.record.Reset()
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return nil, err
		}
		kind, value := e.Key.Kind(), e.Value
		if kind.Separated() {
			h, expiry, err := HandleOf(e.Key.User, value, kind)
			if err != nil {
				return nil, err
			}
			f, err := p.file(h.File)
			if err == nil && f.log != nil {
				kind, value = kind.Inline(), nil
				if expiry > 0 {
					value = base.AppendExpiry(nil, expiry)
				}
				value, err = f.append(value, e.Key.User, h)
			}
			if err != nil {
				fault := &ValueError{Cause: err, Torn: f.log != nil && errors.Is(err, base.ErrCorruption)}
				if p.Fault == nil {
					return nil, fault
				}
				if err := p.Fault(fault); err != nil {
					return nil, err
				}
			}
		}
		p.record.Add(kind, e.Key.User, value)
	}
	return p.record.Seal(seq), nil
}

// Give makes the memory of the record that Inline returned the caller's.
func (p *Replay) Give() { p.record.Give() }

// Hold has a memtable hold the streams that a record of Inline refers to. The values' records are there, and are the
// keys'; whether the values are whole shows when they are read.
func (p *Replay) Hold(m *memtable.Memtable, record []byte) error {
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return err
		}
		if !e.Key.Kind().Separated() {
			continue
		}
		h, _, err := HandleOf(e.Key.User, e.Value, e.Key.Kind())
		if err != nil {
			return err
		}
		f, err := p.find(e.Key.User, h)
		if err != nil {
			return &ValueError{Cause: p.missing(h.File, err)}
		}
		by := heldBy{m, h.File}
		if p.holding[by] {
			f.Release()
			continue
		}
		if p.holding == nil {
			p.holding = map[heldBy]bool{}
		}
		p.holding[by] = true
		m.Hold(f, h.Length)
	}
	return nil
}

// find returns, for one more memtable to hold, the stream that a handle of a log refers to.
func (p *Replay) find(key []byte, h blob.Handle) (*File, error) {
	of, err := p.file(h.File)
	if err != nil {
		return nil, err
	}
	f := p.Store.register(&File{s: p.Store, Blob: &version.Blob{BlobFile: of.BlobFile}})
	r, err := f.Open(&p.Store.Blobs)
	if err == nil {
		_, err = r.OpenStream(key, h)
	}
	if err != nil {
		f.Release()
		return nil, err
	}
	return f, nil
}

// append appends the value of key that the next handle of the log refers to. Handles refer to one record after the
// other, and records are not compressed: what is replayed has no more bytes than the files.
func (f *replayedFile) append(dst, key []byte, h blob.Handle) ([]byte, error) {
	if h.Offset < f.next || h.Size > h.Length {
		return dst, base.Corruptf(f.name, h.Offset, "a log has a handle of %d bytes there, of a value of %d: its "+
			"records are not compressed, and the next one begins at %d", h.Length, h.Size, f.next)
	}
	f.next = h.Offset + h.Length
	return f.log.AppendValue(dst, key, h)
}

// file returns a blob file that records have handles of, and its err. It tries once to open the file.
func (p *Replay) file(num uint64) (*replayedFile, error) {
	if f, ok := p.files[num]; ok {
		return f, f.err
	}
	f := &replayedFile{name: p.Store.Blobs.Path(num)}
	if of := p.Store.File(num); of != nil && of.log != nil { // what the disk has dropped is in memory
		f.log, f.err = of.Open(&p.Store.Blobs)
		f.shared = true
	} else if file, err := p.Store.Blobs.OpenFile(f.name); err != nil {
		f.err = p.missing(num, err)
	} else if f.err = f.examine(file, num, p.Store.Blobs.Hint); f.log == nil {
		_ = file.Close() // it was only read
	}
	if p.files == nil {
		p.files = map[uint64]*replayedFile{}
	}
	p.files[num] = f
	return f, f.err
}

// examine finds out which kind of file it is.
func (f *replayedFile) examine(file vfs.ReadFile, num uint64, hint string) error {
	size, err := file.Size()
	if err != nil {
		return err
	}
	r, byCommit, err := blob.OpenUnfinished(file, size, blob.ReaderOptions{Name: f.name, Hint: hint})
	if err != nil || byCommit {
		f.log = r
		return err
	}
	info, err := blob.ReadInfo(file, size, f.name)
	if err == nil && info.Records == 0 {
		err = &base.CorruptionError{File: f.name, Offset: -1, What: "a log has handles of its values, and it has none"}
	}
	info.Num = num
	f.BlobFile = listing(info)
	return err
}

// Close closes the files that are open.
func (p *Replay) Close() {
	for _, f := range p.files {
		if f.log != nil && !f.shared {
			_ = f.log.Close() // it was only read
		}
	}
	p.files = nil
}

// missing returns the error for a blob file that a log has handles of, and that cannot be opened: one that is not
// there is damage. It is no ErrStale for a follower, which cannot have the file in its view yet.
func (p *Replay) missing(num uint64, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &base.CorruptionError{File: p.Store.Blobs.Path(num), Offset: -1, What: "a log has handles of its values",
		Cause: fs.ErrNotExist}
}
