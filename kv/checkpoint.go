package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Checkpoint makes a store in dir that is as this one is now: everything that was
// written before the call is in it. Files are linked where the file system can,
// so that it is quick and takes little space; they are copied otherwise. Dir must
// not exist, or be empty; after an error it is so again. Reads and writes go on
// meanwhile.
//
// When ctx ends, Checkpoint removes what it has copied, and returns an error that matches ctx.Err().
func (d *DB) Checkpoint(ctx context.Context, dir string) error {
	if err := d.Flush(ctx); err != nil {
		return err
	}
	local := d.localFS()
	dir, err := vfs.Absolute(local, dir)
	if err != nil {
		return err
	}
	c := checkpoint{d: d, fs: d.openFiles.Relieve(local), dir: dir}
	if err := c.checkEmpty(); errors.Is(err, fs.ErrNotExist) {
		c.made = true
	} else if err != nil {
		return err
	}
	s := d.acquire(0) // the files of its version stay on disk
	if s == nil {
		return d.unreadable()
	}
	defer d.release(s, 0)
	if err := c.write(ctx, s.version); err != nil {
		return errors.Join(fmt.Errorf("siftkv: checkpoint to %s: %w", dir, err), c.undo(), c.directory.Close())
	}
	return c.directory.Close()
}

// A checkpoint is one that is being written.
type checkpoint struct {
	d         *DB
	fs        vfs.FS // that dir is on
	dir       string
	directory *vfs.Directory // dir, once it is there
	made      bool           // it was not there before
	ours      bool           // what is in it is the checkpoint's
}

// checkEmpty returns an error unless the directory is there, and empty.
func (c *checkpoint) checkEmpty() error {
	names, err := c.fs.List(c.dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("siftkv: checkpoint: %s is not empty: it holds %q", c.dir, names[0])
	}
	return err
}

// open makes the directory, and keeps it open: undo then never touches another directory that has its name by then.
func (c *checkpoint) open() (err error) {
	if err = vfs.MkdirAllDurable(c.fs, c.dir); err != nil {
		return err
	}
	fsys, directory, err := vfs.OpenDirectory(c.fs, c.dir)
	if err != nil {
		return err
	}
	c.fs, c.directory = fsys, directory
	err = c.checkEmpty()
	c.ours = err == nil
	return err
}

func (c *checkpoint) write(ctx context.Context, v *version.Version) (err error) {
	d := c.d
	if err := c.open(); err != nil {
		return err
	}
	e := &manifest.Edit{StoreID: d.storeID, NextFile: d.nextFile.Load(), LastSeq: v.LastSeq}
	d.mu.Lock()
	d.describeFeatures(e)
	d.mu.Unlock()
	v.Describe(e)
	var names []string
	for b := range v.Blobs() {
		names = append(names, b.Name())
	}
	v.All(func(_ int, t *version.Table) { names = append(names, t.Name()) })
	source := d.copySource(v)
	for _, name := range names {
		if err := c.linkOrCopy(ctx, source, filepath.Join(d.dir, name), filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	d.saveOptions(c.fs, c.dir)
	if err := c.directory.Check(); err != nil {
		return err
	}
	// CURRENT comes last: a checkpoint that was cut short is no store.
	e.LogNum = e.NextFile
	e.NextFile++
	m, err := manifest.Create(c.fs, c.dir, e.LogNum, e)
	if err != nil {
		return err
	}
	return m.Close()
}

// undo removes a checkpoint that could not be finished, CURRENT first: what is left
// if that fails is no store. All files are the checkpoint's, since the directory
// was empty when it was opened.
func (c *checkpoint) undo() error {
	fsys := c.fs
	var names []string
	var err error
	if c.ours {
		names, err = fsys.List(c.dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if kind, _ := manifest.ParseFileName(name); kind != manifest.FileUnknown &&
				first == (name == manifest.CurrentName) {
				errs = append(errs, fsys.Remove(filepath.Join(c.dir, name)))
			}
		}
	}
	err = errors.Join(errs...)
	if err == nil && c.made {
		err = c.removeDir()
	}
	if err != nil {
		return fmt.Errorf("what was written of it could not be removed: %w", err)
	}
	return nil
}

// removeDir removes the directory, which is empty. On some platforms it must not be open.
func (c *checkpoint) removeDir() error {
	directory := c.directory
	c.directory = nil
	if err := errors.Join(directory.Check(), directory.Close()); err != nil {
		return err
	}
	return c.d.localFS().Remove(c.dir)
}

// linkOrCopy gives a file a second name, or copies it out of source where there are no links.
func (c *checkpoint) linkOrCopy(ctx context.Context, source vfs.FS, from, to string) error {
	interrupted := func() error {
		if ctx.Err() != nil {
			return base.ContextError(ctx, "a checkpoint was broken off")
		}
		return nil
	}
	if err := interrupted(); err != nil {
		return err
	}
	if c.d.opts.Objects == nil && c.fs.Link(from, to) == nil {
		return nil
	}
	return vfs.CopyFile(c.fs, to, source, from, interrupted)
}
