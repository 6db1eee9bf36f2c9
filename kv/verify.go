package kv

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Verify checks all of the store in dir, as siftkv verify does: every edit of the manifest, every record of every log,
// and every byte of every table. It checks that they agree, and that the store opens read-only. It takes the store's
// lock as a reader does, and changes nothing. It writes one line per file to w, one per damaged place, and one for
// what a crash explains, such as a log that breaks off. It returns all faults that it found, joined: a
// *CorruptionError for each damaged place, and an error for each file that cannot be read. If the directory is moved
// meanwhile, the errors are about what it was, and one of them matches ErrDirectoryMoved.
//
// When ctx ends, Verify returns after the file that it is in: what it found so far, with an error
// that matches ctx.Err().
func Verify(ctx context.Context, dir string, w io.Writer) error {
	return verifyFS(ctx, vfs.OS, dir, w)
}

func verifyFS(ctx context.Context, fsys vfs.FS, dir string, w io.Writer) error {
	if ctx.Err() != nil {
		return base.ContextError(ctx, "the store was not verified")
	}
	dir, err := vfs.Absolute(fsys, dir)
	if err != nil {
		return err
	}
	o := Options{ReadOnly: true, CacheSize: -1, harness: harness.Harness{FS: fsys}}
	directory, err := o.openDirectory(dir)
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }() // it was read only
	if _, err := o.examine(o.harness.FS, dir); err != nil && !errors.Is(err, ErrCorruption) {
		return err // there is no store to survey, or not all of it yet
	}
	s, err := survey.Verify(ctx, dir, survey.Options{FS: o.harness.FS, ReadOn: true}, func() error {
		db, err := Open(dir, &o)
		if err == nil {
			err = db.Close()
		}
		return err
	})
	if ctx.Err() != nil {
		err = errors.Join(base.ContextError(ctx, "the store was not verified to its end"), err)
	}
	if s == nil {
		return err
	}
	var errs []error
	for _, p := range s.Damage {
		errs = append(errs, &CorruptionError{File: filepath.Join(dir, p.File), Offset: p.Offset, What: p.What,
			Hint: o.hint(dir)})
	}
	return errors.Join(append(errs, err, s.Verdict().WriteText(w))...)
}
