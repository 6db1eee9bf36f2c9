// Package locallog keeps the logs of a store in an object store in a directory on the local disk. A writer claims the
// directory, verifies that it has the logs that the store's newest list of files needs, and commits it to its own
// epoch.
package locallog

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
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Dir is the directory on a disk that has a store's logs, or may have some.
//
// This order keeps logs and lists of files consistent. The identity file is durable before a list names its id, and a
// list names it before the first log is there. Logs are removed after a list omits them. A list that names another
// directory, or none in a later epoch, makes the logs here stale: another writer has abandoned them. A list of this
// directory's epoch that names none makes them worthless: all their writes are in sorted files. So does a later list
// that remembers that one.
type Dir struct {
	fs        vfs.FS
	dir       string
	directory *vfs.Directory // dir, as it was opened
	lock      io.Closer
	identity  identity // zero: there is none, or it is damaged
	bad       error    // why the identity file cannot be read

	mu   sync.Mutex
	logs map[uint64]struct{} // that are in the directory
}

// Claim locks the directory dir of logs and reads what it says of itself. If create is not set and there is none, it
// returns nil. If another process has it, the error is a *vfs.LockedError.
func Claim(fsys vfs.FS, dir string, create bool) (d *Dir, err error) {
	if dir == "" {
		return nil, nil
	}
	d = &Dir{fs: fsys, dir: dir, logs: map[uint64]struct{}{}}
	if create {
		if err := vfs.MkdirAllDurable(d.fs, d.dir); err != nil {
			return nil, err
		}
	} else if _, err := d.fs.Stat(d.path(identityName)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	if d.fs, d.directory, err = vfs.OpenDirectory(d.fs, d.dir); err != nil {
		return nil, err
	}
	if d.lock, err = d.fs.Lock(d.path(lockName), vfs.Exclusive); err != nil {
		return nil, errors.Join(err, d.directory.Close())
	}
	if err := d.read(); err != nil {
		return nil, errors.Join(err, d.free())
	}
	return d, nil
}

// read reads what the directory has. An identity file that is damaged is no error yet.
func (d *Dir) read() error {
	names, err := d.fs.List(d.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch kind, num := manifest.ParseFileName(name); kind {
		case manifest.FileCurrent:
			return fmt.Errorf("%w: %s holds a store of its own; give the log another directory",
				base.ErrForeignDirectory, d.dir)
		case manifest.FileWAL:
			d.logs[num] = struct{}{}
		}
	}
	d.identity, err = d.readIdentity()
	switch {
	case errors.Is(err, base.ErrCorruption):
		d.bad = err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// readIdentity reads the identity file. It matches fs.ErrNotExist if there is none, and base.ErrCorruption if it is
// damaged.
func (d *Dir) readIdentity() (h identity, err error) {
	name := d.path(identityName)
	text, err := vfs.ReadSmallFile(d.fs, name, maxIdentity)
	if err != nil {
		return h, err
	}
	h, err = decodeIdentity(text)
	if errors.Is(err, manifest.ErrNewerFormat) {
		return h, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		err = &base.CorruptionError{File: name, Cause: err, What: "what a directory of logs says of itself"}
	}
	return h, err
}

func (d *Dir) path(base string) string { return filepath.Join(d.dir, base) }

// LogPath returns the path of a log.
func (d *Dir) LogPath(num uint64) string {
	return d.path(manifest.FileName(manifest.FileWAL, num))
}

// leave removes what the directory has, because the last list of files needs none of it.
func (d *Dir) leave() error {
	if err := d.clear(); err != nil {
		return err
	}
	if err := d.fs.Remove(d.path(identityName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.identity, d.bad = identity{}, nil
	return d.Sync()
}

func (d *Dir) free() error { return errors.Join(d.lock.Close(), d.directory.Close()) }

// Close releases the directory. If left, it removes all that the store has there.
func (d *Dir) Close(left bool, log *slog.Logger) error {
	if d == nil {
		return nil
	}
	if left {
		if err := d.leave(); err != nil { // the next writer does it
			log.Warn("logs that are not needed could not be removed", "dir", d.dir, "error", err)
		}
	}
	return d.free()
}

// Create creates a log. It verifies that the directory and its identity file were not replaced.
func (d *Dir) Create(num uint64) (vfs.WriteFile, error) {
	if err := d.directory.Check(); err != nil {
		return nil, err
	}
	h, err := d.readIdentity()
	if err != nil && !errors.Is(err, base.ErrCorruption) {
		return nil, err
	}
	if h != d.identity {
		return nil, errors.Join(fmt.Errorf("%w: %s was the directory of the store's log, and is not any more",
			base.ErrForeignDirectory, d.dir), err)
	}
	file, err := d.fs.Create(d.LogPath(num))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.logs[num] = struct{}{}
	return file, nil
}

// Has reports whether a log is in the directory.
func (d *Dir) Has(num uint64) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.logs[num]
	return ok
}

// Numbers returns the logs that are in the directory, in order.
func (d *Dir) Numbers() []uint64 {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.logs))
}

// Open opens a log for reading.
func (d *Dir) Open(num uint64) (vfs.ReadFile, error) { return d.fs.Open(d.LogPath(num)) }

// Stat returns the size of a log.
func (d *Dir) Stat(num uint64) (int64, error) { return d.fs.Stat(d.LogPath(num)) }

// Sync makes the names of logs durable.
func (d *Dir) Sync() error { return d.fs.SyncDir(d.dir) }

// withRecords returns those of the logs in the directory that have records. Such a log stays until a list of files
// omits it, while an empty one, made in advance, may be removed.
func (d *Dir) withRecords() (nums []uint64, err error) {
	for _, num := range d.Numbers() {
		size, err := d.Stat(num)
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

// Remove removes a log.
func (d *Dir) Remove(num uint64) error {
	if err := d.fs.Remove(d.LogPath(num)); err != nil {
		return err
	}
	d.forget(num)
	return nil
}

func (d *Dir) forget(num uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.logs, num)
}
