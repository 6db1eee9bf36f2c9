package changelog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// errHole says that a history cannot be kept: a log that broke does not have all of it.
var errHole = errors.New("siftkv: the logs do not have all writes")

// errNotStored says that a copy is whole, and could not be made durable.
var errNotStored = errors.New("siftkv: a copy of a log was not stored")

// A Copier copies logs that are not whole, or may have what never was history: writes that failed, and those that
// recovery has dropped. What it writes has the history and nothing else, and is durable and whole.
type Copier struct {
	FS    vfs.FS
	Dir   string
	Time  uint64 // of the parts
	Clean bool   // the store was closed cleanly: no sync of its logs has failed, which the next one would not say
	// Whole returns the file of a log with what it may lack at its end; nil: none lacks anything.
	Whole func(log uint64, f vfs.ReadFile) vfs.ReadFile
	// Inline returns a record, whose first write has a number, with the values of its log in place of their handles.
	Inline func(record []byte, first base.SeqNum) ([]byte, error)
}

// Keep returns the parts that the writes after number from, up to number to, of logs are, oldest first, whole and
// durable. After a clean close logs are so in place. Others, and all of an object store, are copied: the file is num.
func (c *Copier) Keep(logs []uint64, from, to base.SeqNum, num func() uint64) ([]manifest.KeptPart, error) {
	if from >= to {
		return nil, nil
	}
	var unsynced error
	if c.Clean {
		parts, ok, err := c.inPlace(logs, from, to)
		if ok {
			return parts, nil
		}
		unsynced = err
	}
	p, err := c.copy(logs, from, to, num())
	switch {
	case err == nil:
		return []manifest.KeptPart{p}, nil
	case unsynced != nil:
		err = fmt.Errorf("%w: %w: %w", errHole, unsynced, err) // the next attempt would take the log for whole
	}
	return nil, err
}

// copy copies the writes after number from, up to number to, of logs, oldest first, into a new file with number num. It
// returns an error if they are not all there.
func (c *Copier) copy(logs []uint64, from, to base.SeqNum, num uint64) (p manifest.KeptPart, err error) {
	p = manifest.KeptPart{Log: num, Copy: true, Last: from, Time: c.Time}
	name := filepath.Join(c.Dir, p.LogName())
	f, err := c.FS.Create(name)
	if err != nil {
		return p, err
	}
	w := wal.NewWriter(f, num)
	for clean, i := true, 0; i < len(logs) && err == nil; i++ {
		clean, err = c.copyLog(w, logs[i], to, !clean, &p)
	}
	if err == nil && p.Last != to {
		err = fmt.Errorf("%w: those up to %d are there, of %d", errHole, p.Last, to)
	}
	if err == nil {
		err = w.End()
	}
	if err == nil {
		if err = errors.Join(w.SyncFile(), c.FS.SyncDir(c.Dir)); err != nil {
			err = fmt.Errorf("%w: %w", errNotStored, err)
		}
	}
	err = errors.Join(err, w.CloseFile())
	if err == nil {
		err = Measure(c.FS, c.Dir, &p)
	}
	if err != nil {
		_ = c.FS.Remove(name) // if it stays, the next start removes it
	}
	return p, err
}

// inPlace returns the parts that logs are, if they have their ends, and nothing after number from but the history up to
// number to. It makes them durable. If it returns false, they must be copied.
func (c *Copier) inPlace(logs []uint64, from, to base.SeqNum) (parts []manifest.KeptPart, ok bool, unsynced error) {
	syncer, ok := c.FS.(vfs.FileSyncer)
	for i := 0; ok && i < len(logs); i++ {
		p := manifest.KeptPart{Log: logs[i], Last: from, Time: c.Time}
		clean, err := c.copyLog(nil, p.Log, to, false, &p)
		if ok = clean && err == nil; p.Last == from {
			continue
		}
		from = p.Last
		ok = ok && Measure(c.FS, c.Dir, &p) == nil
		for _, name := range p.Names() {
			if ok {
				unsynced = syncer.SyncFile(filepath.Join(c.Dir, name))
				ok = unsynced == nil
			}
		}
		parts = append(parts, p)
	}
	return parts, ok && from == to && c.FS.SyncDir(c.Dir) == nil, unsynced
}

// Measure sets the bytes of a part, which its files in a directory have.
func Measure(fsys vfs.FS, dir string, p *manifest.KeptPart) error {
	for _, name := range p.Names() {
		size, err := fsys.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		p.Bytes += size
	}
	return nil
}

// copyLog copies the records of a log that follow p.Last, up to number to; it only notes them if w is nil. Where the
// log breaks off, so does what it has of the history: if follows is set, that was so of the log before, and its first
// record must be the next. It reports whether the log has its end.
func (c *Copier) copyLog(w *wal.Writer, log uint64, to base.SeqNum, follows bool, p *manifest.KeptPart) (
	clean bool, err error) {
	name := manifest.Path(c.Dir, manifest.FileWAL, log)
	f, err := c.FS.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if c.Whole != nil {
		f = c.Whole(log, f)
	}
	r := wal.NewReader(f, name, log)
	for {
		record, err := r.Next()
		switch {
		case errors.Is(err, io.EOF), wal.Broken(err):
			return r.Clean() && !follows, nil
		case err != nil:
			return false, err
		}
		b, err := batchrepr.NewReader(record)
		if err != nil {
			return false, err
		}
		last := b.Last()
		if last > to {
			return false, nil
		}
		switch {
		case last <= p.Last:
			continue
		case follows && b.Seq() != p.Last+1:
			return false, fmt.Errorf("%w: %d comes after %d", errHole, b.Seq(), p.Last)
		}
		follows, p.Last = false, last
		if err := c.copyRecord(w, record, b.Seq(), p); err != nil {
			return false, err
		}
	}
}

// maxBuffered is how many bytes of a log are written at once.
const maxBuffered = 256 << 10

// copyRecord copies a record, with the values of its log in place of their handles, unless w is nil. It notes the blob
// files of the handles that stay.
func (c *Copier) copyRecord(w *wal.Writer, record []byte, first base.SeqNum, p *manifest.KeptPart) error {
	files, err := filesOf(record)
	if err == nil && w != nil && len(files) > 0 {
		if record, err = c.Inline(record, first); err == nil {
			files, err = filesOf(record)
		}
	}
	for _, file := range files {
		if !slices.Contains(p.Files, file) {
			p.Files = append(p.Files, file)
		}
	}
	if err == nil && w != nil {
		err = w.Append(record)
	}
	if err == nil && w != nil && w.Buffered() > maxBuffered {
		err = w.Flush()
	}
	return err
}

// filesOf returns the blob files of the handles of a record.
func filesOf(record []byte) (files []uint64, err error) {
	for e, err := range batchrepr.All(record) {
		if err != nil {
			return nil, err
		}
		if kind := e.Key.Kind(); kind.Separated() {
			h, _, err := blob.HandleOf(kind, e.Value)
			if err != nil {
				return nil, err
			}
			files = append(files, h.File)
		}
	}
	return files, nil
}

// maxCopyFailures is how many attempts to copy a history may fail for reasons that may pass.
const maxCopyFailures = 5

// Passes reports whether a copy that failed may work when it is tried again.
func Passes(err error) bool {
	return err != nil && !errors.Is(err, errHole) && !errors.Is(err, base.ErrCorruption)
}

// CopyFailed is called with the outcome of each copy. It returns an error if the copy should be tried again. Otherwise
// slots are lost if it has failed: the store goes on without them.
func (l *Log) CopyFailed(err error) error {
	l.mu.Lock()
	l.failures++
	again := Passes(err) && (l.failures < maxCopyFailures || l.Remote && errors.Is(err, errNotStored))
	if !again {
		l.failures = 0
	}
	l.mu.Unlock()
	if again || err == nil {
		return err
	}
	l.Lose(err.Error())
	return nil
}
