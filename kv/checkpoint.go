package kv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Checkpoint makes a store in dir that is as this one is now: everything that was
// written before the call is in it. Files are linked where the file system can,
// so that it is quick and takes little space; they are copied otherwise. Dir must
// not exist, or be empty. Reads and writes go on meanwhile.
func (d *DB) Checkpoint(dir string) (err error) {
	if err := d.Flush(); err != nil {
		return err
	}
	names, err := d.fs.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("siftkv: checkpoint: %s is not empty: it holds %q", dir, names[0])
	}
	s := d.acquire(0) // the tables of its version stay on disk
	if s == nil {
		return ErrClosed
	}
	defer d.release(s, 0)
	if err = makeDir(d.fs, dir); err != nil {
		return err
	}
	e := &manifest.Edit{StoreID: d.storeID, NextFile: d.nextFile.Load(), LastSeq: s.version.lastSeq()}
	s.version.all(func(level int, t *table) {
		e.Added = append(e.Added, manifest.AddedTable{Level: level, Table: t.Table})
		name := manifest.FileName(manifest.FileTable, t.Num)
		if err == nil {
			err = linkOrCopy(d.fs, filepath.Join(d.dir, name), filepath.Join(dir, name))
		}
	})
	if err != nil {
		return err
	}
	// CURRENT comes last: a checkpoint that was cut short is no store.
	e.LogNum = e.NextFile
	e.NextFile++
	m, err := manifest.Create(d.fs, dir, e.LogNum, e)
	if err != nil {
		return err
	}
	return m.Close()
}

// linkOrCopy gives a file a second name, or copies it where there are no links.
func linkOrCopy(fsys vfs.FS, from, to string) error {
	if fsys.Link(from, to) == nil {
		return nil
	}
	r, err := fsys.Open(from)
	if err != nil {
		return err
	}
	size, err := r.Size()
	if err != nil {
		return errors.Join(err, r.Close())
	}
	w, err := fsys.Create(to)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	_, err = io.Copy(w, io.NewSectionReader(r, 0, size))
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close(), r.Close())
}
