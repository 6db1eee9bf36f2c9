package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Checkpoint makes a store in a directory that must not exist, or be empty. It links files, or copies them. After an
// error the directory is as it was.
type Checkpoint struct {
	FS     vfs.FS // that Dir is on
	Dir    string
	Source vfs.FS               // has the files
	From   string               // the directory that they are in
	Names  []string             // of the files
	Link   bool                 // they may be linked
	Store  *manifest.Edit       // describes the store. Its NextFile becomes the number of the manifest
	Save   func(vfs.FS, string) // adds what is not needed to open the store

	on        vfs.FS         // FS, within the directory
	directory *vfs.Directory // Dir, once it is there
	made      bool           // it was not there before
	ours      bool           // what is in it is the checkpoint's
}

// Write makes the checkpoint. It stops when ctx ends; the error then matches ctx.Err().
func (c *Checkpoint) Write(ctx context.Context) error {
	c.on = c.FS
	if err := c.checkEmpty(); errors.Is(err, fs.ErrNotExist) {
		c.made = true
	} else if err != nil {
		return err
	}
	if err := c.write(ctx); err != nil {
		return errors.Join(fmt.Errorf("siftkv: checkpoint to %s: %w", c.Dir, err), c.undo(), c.directory.Close())
	}
	return c.directory.Close()
}

// checkEmpty returns an error unless the directory is there, and empty.
func (c *Checkpoint) checkEmpty() error {
	names, err := c.on.List(c.Dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("siftkv: checkpoint: %s is not empty: it holds %q", c.Dir, names[0])
	}
	return err
}

// open makes the directory, and keeps it open: undo then never touches another directory that has its name by then.
func (c *Checkpoint) open() (err error) {
	if err = vfs.MkdirAllDurable(c.on, c.Dir); err != nil {
		return err
	}
	fsys, directory, err := vfs.OpenDirectory(c.on, c.Dir)
	if err != nil {
		return err
	}
	c.on, c.directory = fsys, directory
	err = c.checkEmpty()
	c.ours = err == nil
	return err
}

func (c *Checkpoint) write(ctx context.Context) error {
	if err := c.open(); err != nil {
		return err
	}
	for _, name := range c.Names {
		if err := c.linkOrCopy(ctx, filepath.Join(c.From, name), filepath.Join(c.Dir, name)); err != nil {
			return err
		}
	}
	c.Save(c.on, c.Dir)
	if err := c.directory.Check(); err != nil {
		return err
	}
	// CURRENT comes last: a checkpoint that was cut short is no store.
	e := c.Store
	e.LogNum = e.NextFile
	e.NextFile++
	m, err := manifest.Create(c.on, c.Dir, e.LogNum, e)
	if err != nil {
		return err
	}
	return m.Close()
}

// undo removes a checkpoint that could not be finished, CURRENT first: what is left if that fails is no store. All
// files are the checkpoint's, since the directory was empty when it was opened.
func (c *Checkpoint) undo() error {
	fsys := c.on
	var names []string
	var err error
	if c.ours {
		names, err = fsys.List(c.Dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if kind, _ := manifest.ParseFileName(name); kind != manifest.FileUnknown &&
				first == (name == manifest.CurrentName) {
				errs = append(errs, fsys.Remove(filepath.Join(c.Dir, name)))
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
func (c *Checkpoint) removeDir() error {
	directory := c.directory
	c.directory = nil
	if err := errors.Join(directory.Check(), directory.Close()); err != nil {
		return err
	}
	return c.FS.Remove(c.Dir)
}

// linkOrCopy gives a file a second name, or copies it out of Source where there are no links.
func (c *Checkpoint) linkOrCopy(ctx context.Context, from, to string) error {
	interrupted := func() error {
		if ctx.Err() != nil {
			return base.ContextError(ctx, "a checkpoint was broken off")
		}
		return nil
	}
	if err := interrupted(); err != nil {
		return err
	}
	if c.Link && c.on.Link(from, to) == nil {
		return nil
	}
	return vfs.CopyFile(c.on, to, c.Source, from, interrupted)
}
