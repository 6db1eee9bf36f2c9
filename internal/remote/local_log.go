package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A localLog is the directory on a disk that has a store's logs, or may have some. The methods before create are for
// taking over or closing the store.
//
// This order keeps logs and lists of files consistent. The home file is durable before a list names its id, and a list
// names it before the first log is there. Logs are removed after a list omits them. A list that names another home, or
// none in a later epoch, makes the logs here stale: another writer has abandoned them. A list of this directory's epoch
// that names none makes them worthless: all their writes are in sorted files. So does a later list that remembers that
// one.
type localLog struct {
	fs        vfs.FS
	dir       string
	directory *vfs.Directory // dir, as it was opened
	lock      io.Closer
	home      homeFile // zero: there is none, or it is damaged
	bad       error    // why the home file cannot be read

	mu   sync.Mutex
	logs map[uint64]struct{} // that are in the directory
}

// openLocalLog locks the directory of logs and reads what it says of itself. It returns nil if there is none, and none
// is wanted. If another process has it, the error is a *vfs.LockedError.
func (f *FS) openLocalLog() (l *localLog, err error) {
	if f.o.LogDir == "" {
		return nil, nil
	}
	l = &localLog{fs: f.o.Local, dir: f.o.LogDir, logs: map[uint64]struct{}{}}
	if f.o.LocalLog {
		if err := vfs.MkdirAllDurable(l.fs, l.dir); err != nil {
			return nil, err
		}
	} else if _, err := l.fs.Stat(l.path(homeName)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	if l.fs, l.directory, err = vfs.OpenDirectory(l.fs, l.dir); err != nil {
		return nil, err
	}
	if l.lock, err = l.fs.Lock(l.path(homeLockName), vfs.Exclusive); err != nil {
		return nil, errors.Join(err, l.directory.Close())
	}
	if err := l.read(); err != nil {
		return nil, errors.Join(err, l.free())
	}
	return l, nil
}

// read reads what the directory has. A home file that is damaged is no error yet.
func (l *localLog) read() error {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch kind, num := manifest.ParseFileName(name); kind {
		case manifest.FileCurrent:
			return fmt.Errorf("%w: %s holds a store of its own; give the log another directory",
				base.ErrForeignDirectory, l.dir)
		case manifest.FileWAL:
			l.logs[num] = struct{}{}
		}
	}
	l.home, err = l.readHome()
	switch {
	case errors.Is(err, base.ErrCorruption):
		l.bad = err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// readHome reads the home file. It matches fs.ErrNotExist if there is none, and base.ErrCorruption if it is damaged.
func (l *localLog) readHome() (h homeFile, err error) {
	name := l.path(homeName)
	size, err := l.fs.Stat(name)
	if err != nil {
		return h, err
	}
	text := []byte(nil)
	if size <= mostHome {
		if text, err = readAll(l.fs, name); err != nil {
			return h, err
		}
	}
	h, err = decodeHome(text)
	if errors.Is(err, manifest.ErrNewerFormat) {
		return h, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		err = &base.CorruptionError{File: name, Cause: err, What: "what a directory of logs says of itself"}
	}
	return h, err
}

func (l *localLog) path(base string) string { return filepath.Join(l.dir, base) }

func (l *localLog) logPath(num uint64) string {
	return l.path(manifest.FileName(manifest.FileWAL, num))
}

// A logVerdict is what the newest list of files makes of a directory of logs.
type logVerdict struct {
	here  bool     // the logs that the list needs are those in the directory
	lost  bool     // they are in another
	stale []uint64 // those in the directory that have records, and were abandoned
}

// judge compares the directory with a list of files of a store.
func (l *localLog) judge(list logHome, store uint64) (v logVerdict, err error) {
	own := l != nil && l.home.id != 0 && l.home.store == store
	v.here = own && list.id == l.home.id && l.home.epoch >= list.epoch
	v.lost = list.id != 0 && !v.here
	ended := own && (list.id == 0 && l.home.epoch >= list.epoch ||
		slices.Contains(list.ended, endedLog{l.home.id, l.home.epoch}))
	if l == nil || v.here || ended {
		return v, nil
	}
	v.stale, err = l.withRecords()
	return v, err
}

// isForeign reports whether the directory has the log of another store. If store is 0, a home without records does not
// count: its store was never completed.
func (l *localLog) isForeign(store uint64) (bool, error) {
	if l == nil || l.home.id == 0 || l.home.store == store {
		return false, nil
	}
	logs, err := l.withRecords()
	return store != 0 || len(logs) > 0, err
}

// refusal is the error that a verdict means unless AbandonLog is set; nil if none.
func (l *localLog) refusal(v logVerdict, list logHome) error {
	var err error
	if v.lost {
		e := &LogHomeError{Err: ErrLogElsewhere, Place: list.place, What: "no directory was given"}
		if l != nil {
			e.Dir, e.Cause, e.What = l.dir, l.bad, l.dir+" has no log of it"
			if l.home.id == list.id {
				e.What = fmt.Sprintf("%s is an older copy of it, of epoch %d, where the store is at %d", l.dir,
					l.home.epoch, list.epoch)
			}
		}
		err = e
	}
	if len(v.stale) == 0 {
		return err
	}
	e := &LogHomeError{Err: ErrLogAbandoned, Dir: l.dir, Place: list.place, Cause: l.bad,
		What: "and nothing says whose they are"}
	if l.home.id != 0 {
		e.What = fmt.Sprintf("of epoch %d, where the store is at %d", l.home.epoch, list.epoch)
	}
	for _, num := range v.stale {
		e.Logs = append(e.Logs, manifest.FileName(manifest.FileWAL, num))
	}
	return errors.Join(err, e)
}

// setAside renames stale logs to names that are not those of logs, and returns them.
func (l *localLog) setAside(stale []uint64) (kept []AbandonedLog, err error) {
	for _, num := range stale {
		name := l.logPath(num)
		aside := fmt.Sprintf("%s.epoch-%d", name, l.home.epoch)
		for n := 2; ; n++ {
			if _, err := l.fs.Stat(aside); errors.Is(err, fs.ErrNotExist) {
				break
			} else if err != nil {
				return kept, err
			}
			aside = fmt.Sprintf("%s.epoch-%d-%d", name, l.home.epoch, n)
		}
		size, err := l.fs.Stat(name)
		if err == nil {
			err = l.fs.Rename(name, aside)
		}
		if err != nil {
			return kept, err
		}
		l.forget(num)
		kept = append(kept, AbandonedLog{File: aside, Bytes: size,
			Reason: "a later writer of the store has given this log up (Objects.AbandonLog)"})
	}
	return kept, l.fs.SyncDir(l.dir)
}

// clear removes all logs that are left: they are not needed, or have no records.
func (l *localLog) clear() error {
	for _, num := range l.numbers() {
		if err := l.remove(num); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.fs.SyncDir(l.dir)
}

// settle assigns the directory to the writer with an epoch, with its logs or without any. If the writer keeps no logs
// here, and there are none, it leaves. The change is durable on return.
func (l *localLog) settle(here, keep bool, store, epoch uint64) error {
	next := homeFile{id: l.home.id, store: store, epoch: epoch}
	if !here {
		if err := l.clear(); err != nil {
			return err
		}
		next.id = sequence.RandomID()
	}
	if !here && !keep {
		return l.leave()
	}
	if err := vfs.ReplaceFile(l.fs, l.path(homeName), next.encode()); err != nil {
		return err
	}
	l.home, l.bad = next, nil
	return nil
}

// leave removes what the directory has, because the last list of files needs none of it.
func (l *localLog) leave() error {
	if err := l.clear(); err != nil {
		return err
	}
	if err := l.fs.Remove(l.path(homeName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.home, l.bad = homeFile{}, nil
	return l.fs.SyncDir(l.dir)
}

// free releases the directory.
func (l *localLog) free() error { return errors.Join(l.lock.Close(), l.directory.Close()) }

// close releases the directory. If left, it removes all that the store has there.
func (l *localLog) close(left bool, log *slog.Logger) error {
	if l == nil {
		return nil
	}
	if left {
		if err := l.leave(); err != nil { // the next writer does it
			log.Warn("logs that nobody needs could not be removed", "dir", l.dir, "error", err)
		}
	}
	return l.free()
}

// create creates a log. It verifies that the directory and its home file were not replaced.
func (l *localLog) create(num uint64) (vfs.WriteFile, error) {
	if err := l.directory.Check(); err != nil {
		return nil, err
	}
	h, err := l.readHome()
	if err != nil && !errors.Is(err, base.ErrCorruption) {
		return nil, err
	}
	if h != l.home {
		return nil, errors.Join(fmt.Errorf("%w: %s was the directory of the store's log, and is not any more",
			base.ErrForeignDirectory, l.dir), err)
	}
	file, err := l.fs.Create(l.logPath(num))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs[num] = struct{}{}
	return file, nil
}

// has reports whether a log is in the directory.
func (l *localLog) has(num uint64) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.logs[num]
	return ok
}

// numbers returns the logs that are in the directory, in order.
func (l *localLog) numbers() []uint64 {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.logs))
}

// withRecords returns those of the logs in the directory that have records. Such a log stays until a list of files
// omits it, while an empty one, made in advance, may be removed.
func (l *localLog) withRecords() (nums []uint64, err error) {
	for _, num := range l.numbers() {
		size, err := l.fs.Stat(l.logPath(num))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being removed
		}
		if err != nil {
			return nil, err
		}
		if size > wal.HeaderSize {
			nums = append(nums, num)
		}
	}
	return nums, nil
}

func (l *localLog) remove(num uint64) error {
	if err := l.fs.Remove(l.logPath(num)); err != nil {
		return err
	}
	l.forget(num)
	return nil
}

func (l *localLog) forget(num uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.logs, num)
}
