package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// finish makes the directory the store that the stream describes.
func (r *restore) finish() error {
	e, err := r.in.describedStore(r.Check)
	if err != nil || r.again {
		return err
	}
	if err := r.checkTables(e.Added); err != nil {
		return err
	}
	names, err := r.FS.List(r.Dir)
	if err != nil {
		return err
	}
	num := e.NextFile
	for _, name := range names {
		_, n := manifest.ParseFileName(name)
		num = max(num, n+1)
	}
	e.LogNum, e.NextFile = num, num+1 // a log with the manifest's number: none
	e.Restored = 0
	if r.Published {
		e.Restored = r.state.Doing
	}
	m, err := manifest.Create(r.FS, r.Dir, num, e)
	if err != nil {
		return err
	}
	if err := m.Close(); err != nil {
		return err
	}
	if err := r.note(manifest.RestoreState{Done: r.state.Doing, Manifest: num}); err != nil {
		return err
	}
	if !r.Published { // there readers do not register: who opens the store next gives them time
		r.removeOthers(names, e)
	}
	return nil
}

// checkTables checks that every table is there, the right one and of the right size.
// It reads the tables' tails.
func (r *restore) checkTables(tables []manifest.AddedTable) error {
	var errs []error
	for i := range tables {
		errs = append(errs, r.checkTable(&tables[i].Table))
	}
	return errors.Join(errs...)
}

func (r *restore) checkTable(t *manifest.Table) error {
	name := r.path(manifest.FileTable, t.Num)
	f, err := r.FS.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size != t.Size {
		err = &base.CorruptionError{File: name, Offset: min(size, t.Size),
			What: fmt.Sprintf("the file has %d bytes, and had %d when it was backed up", size, t.Size)}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	table, err := sstable.NewReader(f, size,
		&sstable.ReaderOptions{Name: name, CacheSize: -1, TailSize: t.TailSize, ID: t.ID, Seq: t.Seq,
			AnyExpansion: true})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return table.Close()
}

// removeOthers removes the store's files that the description does not list. What cannot
// be removed, or may be needed by somebody who has the store of the backup before
// open by OpenReadOnly, is left to the next Open.
func (r *restore) removeOthers(names []string, e *manifest.Edit) {
	if n, _, err := manifest.Readers(r.FS, r.Dir); err != nil || n > 0 {
		r.Log.Info("obsolete files stay: the store may have readers", "dir", r.Dir, "readers", n, "error", err)
		return
	}
	live := map[uint64]bool{}
	for i := range e.Added {
		live[e.Added[i].Table.Num] = true
	}
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		if kind == manifest.FileTable && !live[num] || kind == manifest.FileManifest && num != e.LogNum {
			r.remove(filepath.Join(r.Dir, name))
		}
	}
}

func (r *restore) remove(name string) {
	if err := r.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("an obsolete file could not be removed", "file", name, "error", err)
	}
}
