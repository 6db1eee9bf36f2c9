package backup

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// In an object store a list of files is published in one step, and defines the store. Sorted files that are in no list
// are garbage, and the next writer deletes them. So there is no RESTORE file: an interrupted restore has changed
// nothing and begins again. The manifest of a restored store names the backup; the next writer makes a manifest that
// does not.

// restorePublished is Restore into a directory of an object store.
func restorePublished(in *Reader, to Target) (offset int64, err error) {
	if !in.Started() {
		return -1, errNotStarted()
	}
	// Taking the lock fences the store's writer. So what may be refused is refused before.
	look := &restore{Target: to, in: in}
	look.FS = to.Reader
	if err := look.admit(); err != nil {
		return -1, err
	}
	if look.again {
		return look.run()
	}
	r := &restore{Target: to, in: in}
	lock, err := to.FS.Lock(filepath.Join(to.Dir, manifest.LockName), vfs.Exclusive)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := r.admit(); err != nil {
		return -1, err
	}
	return r.run()
}

// readState returns what restores have done to the directory.
func (r *restore) readState() (manifest.RestoreState, error) {
	if r.Published {
		return Published(r.FS, r.Dir)
	}
	return manifest.Restore(r.FS, r.Dir)
}

// Published returns what restores have done to a directory in an object store: the last backup that was restored,
// unless the store was written to since.
func Published(fsys vfs.FS, dir string) (s manifest.RestoreState, err error) {
	num, err := manifest.Current(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	edits := 0
	err = manifest.Load(fsys, dir, num, func(e *manifest.Edit) error {
		edits++
		s = manifest.RestoreState{Done: e.Restored, Manifest: num}
		return nil
	})
	if edits > 1 || s.Done == 0 { // a restore writes one
		s = manifest.RestoreState{}
	}
	return s, err
}
