package backup

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// In an object store a list of files is put there in one step, and makes the store what it is. Sorted
// files that are in no list are nobody's, and the next writer deletes them. So there is no RESTORE
// file: a restore that broke off has changed nothing and begins anew, and the manifest of a restored
// store says which backup that is. The next writer makes a manifest that does not say so.

// restorePublished is Restore into a directory of an object store.
func restorePublished(in *Reader, to Target) (offset int64, err error) {
	if !in.Started() {
		return -1, errNotStarted()
	}
	// To take the lock is to fence whoever writes to the store. So what may be refused is refused before.
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
// unless somebody has written to the store since.
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
	if edits > 1 || s.Done == 0 { // whoever restored it wrote one
		s = manifest.RestoreState{}
	}
	return s, err
}
