package remote

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
)

// List implements vfs.FS.
func (f *FS) List(dir string) ([]string, error) {
	if !f.isRoot(dir) {
		return f.o.Local.List(dir)
	}
	if names, found, err := f.find(); found || err != nil {
		return names, err
	}
	names, err := f.small.List(objectdir.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f.mu.Lock()
	for num, t := range f.list.Files {
		names = append(names, t.Name(num))
	}
	f.mu.Unlock()
	if w := f.asWriter(); w != nil {
		for _, num := range w.local.Numbers() {
			names = append(names, manifest.FileName(manifest.FileWAL, num))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// find reads the state, for a reader. For a future writer it only checks whether there is a store, and returns the
// visible names: the state is read after earlier writers are fenced. That is one LIST.
func (f *FS) find() (names []string, only bool, err error) {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	if !f.o.Writes || f.asWriter() != nil {
		return nil, false, f.load()
	}
	if err = f.locate(f.ctx); err != nil {
		return nil, true, err
	}
	if f.tail, err = f.seq.Tail(f.ctx); err == nil && f.tail.Data > 0 {
		return []string{manifest.CurrentName}, true, nil
	}
	if err == nil {
		err = f.checkBegun()
	}
	return nil, true, err
}

// MkdirAll implements vfs.FS: an object store has no directories.
func (f *FS) MkdirAll(dir string) error {
	if f.isRoot(dir) {
		return nil
	}
	return f.o.Local.MkdirAll(dir)
}

// SyncDir implements vfs.FS: names are durable with their files, except those of logs on the local disk, and of slots.
func (f *FS) SyncDir(dir string) error {
	if !f.isRoot(dir) {
		return f.o.Local.SyncDir(dir)
	}
	w := f.asWriter()
	if w == nil {
		return nil
	}
	err := w.publishSlots()
	if f.o.LocalLog {
		err = errors.Join(err, w.local.Sync())
	}
	return err
}

func (f *FS) isRoot(dir string) bool { return filepath.Clean(dir) == filepath.Clean(objectdir.Root) }
