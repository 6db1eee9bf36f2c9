package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Restore reads a stream that Backup has written, and makes of dir the store that was backed up. A full backup goes
// into a directory that is empty or not there. One since a mark goes into the directory that the backup before was
// restored into, unless that was opened for writing. Whatever goes wrong, dir is not a store that is half one and half
// the other: until a restore is finished, Open refuses it with ErrRestoreUnfinished.
//
// A stream that does not fit is refused with ErrBackupMismatch, and dir is as before. If the stream breaks off or is
// damaged, or the disk is full, the error is a *RestoreError. Whole files are kept, and a further call goes on, also
// after a crash. It takes the whole stream once more, what follows the error's offset, or the stream of a backup since
// the mark that came with the error of Backup.
//
// Restore reads up to the stream's end and no further. The streams of a full backup and those since may follow one
// another, each for a call of its own. Of the options only Logger, FileMode and Objects count; they may be nil.
//
// With Options.Objects the store is restored in an object store, and dir does not matter. It gets there in one step,
// after all of its files. Whatever goes wrong, the object store still has the store that was there before, or none
// before a full backup. A call that failed is made again with the whole stream; the files that it had put there are
// deleted by the next writer, after Objects.Grace. A store that is there and is not the backup before is refused with
// ErrBackupMismatch, and its writer is not fenced.
//
// When ctx ends, Restore waits for a read from r that has begun, and returns a *RestoreError that matches ctx.Err().
func Restore(ctx context.Context, r io.Reader, dir string, o *Options) error {
	if r == nil {
		return errNilReader
	}
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	if opts.Objects != nil {
		return opts.restoreObjects(ctx, r)
	}
	if dir == "" || opts.InMemory {
		return fmt.Errorf("%w: a backup is restored into a directory, or into Objects", ErrInvalidOptions)
	}
	if dir, err = vfs.Absolute(opts.harness.FS, dir); err != nil {
		return err
	}
	return restoreInto(ctx, r, backup.Target{FS: opts.harness.FS, Dir: dir, Log: opts.Logger})
}

// restoreObjects restores into an object store.
func (o *Options) restoreObjects(ctx context.Context, r io.Reader) (err error) {
	p := o.objectParams()
	p.Transfer = true
	fsys, err := o.objects.Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fsys.Close()) }()
	p.Writes = false
	reader, err := o.objects.Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	names, err := reader.List(objectdir.Root)
	if err == nil && !slices.Contains(names, manifest.CurrentName) {
		err = o.objects.CheckStore(ctx)
	}
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = fsys.Close() })() // ends the requests under way
	to := backup.Target{FS: fsys, Dir: objectdir.Root, Log: o.Logger, Published: true, Reader: reader}
	err = restoreInto(ctx, r, to)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", base.ContextError(ctx, "it was broken off"), err)
	}
	return err
}

// restoreInto restores a stream into a directory.
func restoreInto(ctx context.Context, r io.Reader, to backup.Target) error {
	to.Check = checkDescription
	to.Interrupted = func() error {
		if ctx.Err() == nil {
			return nil
		}
		return base.ContextError(ctx, "it was broken off")
	}
	offset, err := backup.Restore(r, to)
	if err != nil && offset >= 0 {
		return &RestoreError{Dir: to.Dir, Offset: offset, Err: err}
	}
	return err
}

// checkDescription refuses a description of a store in a backup that no store has.
func checkDescription(e *manifest.Edit) error {
	_, err := (&version.Version{}).Apply(e)
	return err
}

// A RestoreError says how far an unfinished restore got.
type RestoreError struct {
	Dir    string
	Offset int64 // of the stream: what follows it is still to come
	Err    error // what happened; io.ErrUnexpectedEOF if the stream ends too early
}

// Error says what to do.
func (e *RestoreError) Error() string {
	again := "the whole stream"
	if e.Offset > 0 {
		again = fmt.Sprintf("the whole stream, or with what follows offset %d", e.Offset)
	}
	return fmt.Sprintf("%v: the one into %s; call Restore again with %s: %v", ErrRestoreUnfinished, e.Dir, again, e.Err)
}

// Unwrap makes the error match ErrRestoreUnfinished and its cause.
func (e *RestoreError) Unwrap() []error { return []error{ErrRestoreUnfinished, e.Err} }
