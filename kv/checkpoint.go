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
func (d *DB) Checkpoint(dir string) error { return d.CheckpointContext(context.Background(), dir) }

// CheckpointContext is Checkpoint for a caller who waits no longer than ctx lasts.
// The error then matches ctx.Err(), and what was copied is removed.
func (d *DB) CheckpointContext(ctx context.Context, dir string) error {
	if err := d.FlushContext(ctx); err != nil {
		return err
	}
	names, missing := d.fs.List(dir)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return missing
	}
	if len(names) > 0 {
		return fmt.Errorf("siftkv: checkpoint: %s is not empty: it holds %q", dir, names[0])
	}
	s := d.acquire(0) // the files of its version stay on disk
	if s == nil {
		return ErrClosed
	}
	defer d.release(s, 0)
	c := checkpoint{d: d, dir: dir, made: errors.Is(missing, fs.ErrNotExist)}
	if err := c.write(ctx, s.version); err != nil {
		return errors.Join(fmt.Errorf("siftkv: checkpoint to %s: %w", dir, err), c.undo())
	}
	return nil
}

// A checkpoint is one that is being written.
type checkpoint struct {
	d    *DB
	dir  string
	made bool // the directory was not there before
}

func (c *checkpoint) write(ctx context.Context, v *version.Version) (err error) {
	d := c.d
	if err := vfs.MkdirAllDurable(d.fs, c.dir); err != nil {
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
		if err := d.linkOrCopy(ctx, source, filepath.Join(d.dir, name), filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	d.saveOptions(c.dir)
	// CURRENT comes last: a checkpoint that was cut short is no store.
	e.LogNum = e.NextFile
	e.NextFile++
	m, err := manifest.Create(d.fs, c.dir, e.LogNum, e)
	if err != nil {
		return err
	}
	return m.Close()
}

// undo removes a checkpoint that could not be finished, CURRENT first: what is left
// if that fails is no store. All files are the checkpoint's, since the directory
// was empty.
func (c *checkpoint) undo() error {
	fsys := c.d.fs
	names, err := fsys.List(c.dir)
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
		err = fsys.Remove(c.dir)
	}
	if err != nil {
		return fmt.Errorf("what was written of it could not be removed: %w", err)
	}
	return nil
}

// linkOrCopy gives a file a second name, or copies it out of source where there are no links.
func (d *DB) linkOrCopy(ctx context.Context, source vfs.FS, from, to string) error {
	interrupted := func() error {
		if ctx.Err() != nil {
			return base.ContextError(ctx, "a checkpoint was broken off")
		}
		return nil
	}
	if err := interrupted(); err != nil {
		return err
	}
	if d.fs.Link(from, to) == nil {
		return nil
	}
	return vfs.CopyFile(d.fs, to, source, from, interrupted)
}
