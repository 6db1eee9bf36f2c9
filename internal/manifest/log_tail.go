package manifest

import (
	"errors"
	"io"
	"io/fs"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A LogTail reads logs that a writer adds to meanwhile, in order. Each Read goes on where the last one ended. It is not
// safe for concurrent use.
type LogTail struct {
	FS  vfs.FS
	Dir string

	num  uint64
	file vfs.ReadFile // nil: none is open
	r    *wal.Reader
	done bool // a record was read that ends the log
}

// ErrLogEnds is for the function of LogTail.Read: history ends before the record that it has got.
var ErrLogEnds = errors.New("the log ends here")

// Read calls each with every record that was not read before of the logs from number first on, and with the log's
// number and reader. It ends with the logs that were there when it was called, though a writer may go on. The next log
// counts only if the one before it was closed cleanly. An error of interrupted, which is called every few records, ends
// it, and so does one of each.
func (t *LogTail) Read(first uint64, each func(num uint64, r *wal.Reader, record []byte) error,
	interrupted func() error) (err error) {
	if t.file != nil && t.num < first {
		err = t.Close()
	}
	if err == nil && t.file == nil {
		err = t.open(first)
	}
	if err != nil || t.file == nil {
		return err
	}
	for later := []uint64(nil); ; { // listed once: a writer may make logs faster than they are read
		whole, err := t.read(each, interrupted)
		fresh := later == nil
		if err == nil && whole && fresh {
			later, err = t.after(t.num)
		}
		if err != nil || !whole || len(later) == 0 {
			return err
		}
		// The writer may have removed the next one again before anything was in it. Then reading goes on in the log
		// that was read. Of one that it has removed since the list, another list says which is next.
		next := LogTail{FS: t.FS, Dir: t.Dir}
		err = next.open(later[0])
		if !fresh && errors.Is(err, fs.ErrNotExist) {
			later = nil
			continue
		}
		if err != nil || next.file == nil {
			return err
		}
		err = t.Close()
		if *t, later = next, later[1:]; err != nil {
			return err
		}
	}
}

// open opens a log. It opens none if there is none, nor a later one: a new store has its manifest before its log.
func (t *LogTail) open(num uint64) error {
	name := Path(t.Dir, FileWAL, num)
	file, err := t.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		later, listErr := t.after(num)
		if len(later) == 0 {
			return listErr
		}
		return &base.CorruptionError{File: name, Offset: -1, Cause: err, What: "the log is missing, although " +
			FileName(FileWAL, later[0]) + ", which came later, is there"}
	}
	if err == nil {
		t.num, t.file, t.r, t.done = num, file, wal.NewReader(file, name, num), false
	}
	return err
}

// Close closes the log that is open. The next Read begins with the first log again.
func (t *LogTail) Close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// after returns the numbers of the logs after num, in order.
func (t *LogTail) after(num uint64) ([]uint64, error) {
	names, err := t.FS.List(t.Dir)
	return Numbers(names, FileWAL, num+1), err
}

// read reads what is new in the log. It reports whether that was the end of a log that was closed cleanly.
func (t *LogTail) read(each func(num uint64, r *wal.Reader, record []byte) error, interrupted func() error) (
	whole bool, err error) {
	if t.done {
		return false, nil
	}
	if _, err := t.r.Follow(); err != nil {
		return false, err
	}
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := interrupted(); err != nil {
				return false, err
			}
		}
		record, err := t.r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return t.r.Clean(), each(t.num, t.r, nil)
		case t.r.CrashExplains(err):
			return false, each(t.num, t.r, nil) // a write that is under way, or was when the writer died
		case err != nil:
			return false, err
		}
		if err := each(t.num, t.r, record); err != nil {
			t.done = errors.Is(err, ErrLogEnds)
			if t.done {
				err = nil // the writer's machine lost power, and the store was not recovered since
			}
			return false, err
		}
	}
}
