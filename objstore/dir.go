package objstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// dir is a Store that keeps each object in a file of a directory.
type dir struct {
	gate
	root *os.Root
	sync func(name string) error // makes the names in a directory durable
	made sync.Map                // the directories with names that this client has made durable

	fileMode, dirMode fs.FileMode
}

const (
	tempDir   = ".tmp" // no key's path begins with a dot
	staleTemp = time.Hour
)

// OpenDir returns a client of the store in a directory of a local file system, which it makes if there is none.
// Any number of processes may have clients of one directory. It is for one machine, and for tests of what will
// run on many.
//
// An object is a file of its own, under the key's name if that is in lower case, else escaped; other files, and
// symbolic links, are no objects. Symbolic links that lead out of the directory are not followed. A write goes to a
// file in the directory .tmp, is synced, and gets its name at once: PutIfAbsent by link(2), which the file system must
// have. Files that dead processes have left there are removed when a client is opened at least an hour later.
//
// Files have the mode 0600 and directories 0700: only their owner can read them. OpenDirMode sets another one.
func OpenDir(name string) (Store, error) { return OpenDirMode(name, 0o600) }

// OpenDirMode is OpenDir with the mode of the files that this client makes, before the umask: permissions, those of the
// owner to read and write among them. Directories have x where mode has r: 0640 gives 0750. Existing files keep their
// mode. If a group should read a directory, all of its writers need such a mode.
func OpenDirMode(name string, mode fs.FileMode) (Store, error) {
	if mode&^fs.ModePerm != 0 || mode&0o600 != 0o600 {
		return nil, fmt.Errorf("objstore: the mode is %#o: want permissions with 0600 among them", uint32(mode))
	}
	const r, toX = 0o444, 2
	dirMode := mode | mode&r>>toX
	name, err := filepath.Abs(name)
	if err == nil {
		err = makeDurable(name, dirMode)
	}
	if err != nil {
		return nil, fmt.Errorf("objstore: make directory: %w", err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("objstore: open directory: %w", err)
	}
	d := &dir{root: root, fileMode: mode, dirMode: dirMode,
		sync: func(name string) error { return syncDir(root.Open, name) }}
	d.removeStale(time.Now().Add(-staleTemp))
	return d, nil
}

// makeDurable makes a directory and the parents it needs, and their names durable.
func makeDurable(name string, mode fs.FileMode) error {
	parents := []string{filepath.Dir(name)}
	for d := filepath.Dir(name); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		parents = append(parents, filepath.Dir(d))
	}
	if err := os.MkdirAll(name, mode); err != nil {
		return err
	}
	for _, d := range parents {
		if err := syncDir(os.Open, d); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func (d *dir) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	return d.root.Close()
}

func (d *dir) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if err := d.admit(ctx, Get, key); err != nil || len(p) == 0 {
		return 0, err
	}
	n, err := d.read(pathOf(key), off, p)
	if !errors.Is(err, io.EOF) {
		err = d.failure(Get, key, err)
	}
	return n, err
}

func (d *dir) read(name string, off int64, p []byte) (int, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fs.ErrNotExist
	}
	from, n, end := span(info.Size(), off, p)
	if end != nil && !errors.Is(end, io.EOF) {
		return 0, end
	}
	if n, err = f.ReadAt(p[:n], from); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the file was truncated
	}
	if err != nil {
		return n, err
	}
	return n, end
}

func (d *dir) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	return d.write(ctx, Put, key, r, size, d.root.Rename)
}

func (d *dir) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return d.write(ctx, PutIfAbsent, key, bytes.NewReader(body), int64(len(body)), d.link)
}

// write gives a file of the first size bytes of r a key's name, by publish.
func (d *dir) write(ctx context.Context, op Kind, key string, r io.ReaderAt, size int64,
	publish func(from, to string) error) error {
	if err := d.admit(ctx, op, key); err != nil {
		return err
	}
	name := pathOf(key)
	err := d.makeDirs(path.Dir(name))
	if err != nil {
		return d.failure(op, key, err)
	}
	temp, err := d.writeTemp(ctx, r, size)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = publish(temp, name)
		if err == nil || errors.Is(err, ErrExists) {
			// The object may be of another process that has not synced yet: a caller must not see an object that a
			// power cut undoes.
			if failed := d.sync(path.Dir(name)); failed != nil {
				err = fmt.Errorf("%w: %w", ErrUnknown, failed)
			}
		} else if errors.Is(err, syscall.EIO) {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	}
	_ = d.root.Remove(temp) // it is gone after a rename; what stays is removed as stale
	return d.failure(op, key, err)
}

// link gives a file another name, unless there is an object of that name.
func (d *dir) link(temp, name string) error {
	err := d.root.Link(temp, name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, failed := d.root.Lstat(name)
	if failed != nil {
		return ErrExists // and was deleted since
	}
	if !there.Mode().IsRegular() {
		return err
	}
	if own, failed := d.root.Lstat(temp); failed == nil && os.SameFile(there, own) {
		return nil // the request was repeated below us
	}
	return ErrExists
}

// writeTemp makes a synced file of the first size bytes of r. It returns its name even if it fails.
func (d *dir) writeTemp(ctx context.Context, r io.ReaderAt, size int64) (string, error) {
	name := path.Join(tempDir, rand.Text())
	if err := d.makeDirs(tempDir); err != nil {
		return name, err
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, d.fileMode)
	if err != nil {
		return name, err
	}
	err = copyObject(ctx, f, r, size)
	if err == nil {
		err = f.Sync()
	}
	return name, errors.Join(err, f.Close())
}

func (d *dir) Delete(ctx context.Context, key string) error {
	if err := d.admit(ctx, Delete, key); err != nil {
		return err
	}
	name := pathOf(key)
	info, err := d.root.Lstat(name)
	if err == nil && info.Mode().IsRegular() {
		if err = d.root.Remove(name); err == nil {
			if err = d.sync(path.Dir(name)); err != nil {
				err = fmt.Errorf("%w: %w", ErrUnknown, err)
			}
		}
	}
	if isAbsent(err) {
		return nil
	}
	return d.failure(Delete, key, err)
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// failure returns the error of a call from one of the file system.
func (d *dir) failure(op Kind, key string, err error) error {
	switch {
	case op == Get && isAbsent(err):
		err = ErrNotExist
	case errors.Is(err, fs.ErrClosed) && d.closed.Load():
		err = ErrClosed
	}
	return wrap(op, key, err)
}

// makeDirs makes a directory and the parents it needs, and their names durable. Directories are never removed.
func (d *dir) makeDirs(name string) error {
	if _, ok := d.made.Load(name); ok || name == "." {
		return nil
	}
	parent := path.Dir(name)
	if err := d.makeDirs(parent); err != nil {
		return err
	}
	if err := d.root.Mkdir(name, d.dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.sync(parent); err != nil {
		return err
	}
	d.made.Store(name, true)
	return nil
}

// removeStale removes the temporary files that were last written to before a time. A process that stalled for so
// long fails to publish its own.
func (d *dir) removeStale(before time.Time) {
	entries, _ := fs.ReadDir(d.root.FS(), tempDir) // a reader may not be allowed to
	for _, e := range entries {
		name := path.Join(tempDir, e.Name())
		if info, err := d.root.Lstat(name); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = d.root.Remove(name)
		}
	}
}
