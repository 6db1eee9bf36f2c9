package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Restore reads a stream that Backup has written, and makes of dir the store that was
// backed up. A full backup goes into a directory that is empty or not there; one
// since a mark into the directory that the backup before was restored into, as long
// as nobody has opened it for writing. Whatever goes wrong, dir is not a store that is
// half one and half the other: until a restore is finished, Open refuses it with
// ErrRestoreUnfinished.
//
// A stream that does not fit is refused with ErrBackupMismatch, and dir is as before.
// If the stream breaks off or is damaged, or the disk is full, the error is a
// *RestoreError. What was whole is kept, and a further call goes on: with the whole
// stream once more, with what follows the error's offset, or with the stream of a
// backup since the mark that came with the error of Backup. So it does after a crash.
//
// Restore reads up to the stream's end and no further: the streams of a full backup
// and those since may stand one behind the other, each for a call of its own. Of the
// options only Logger counts; they may be nil.
func Restore(r io.Reader, dir string, o *Options) error {
	return RestoreContext(context.Background(), r, dir, o)
}

// RestoreContext is Restore for a caller who waits no longer than ctx lasts. The error
// then is a *RestoreError that matches ctx.Err(). A read from r that has begun is
// waited for.
func RestoreContext(ctx context.Context, r io.Reader, dir string, o *Options) (err error) {
	opts, err := o.withDefaults()
	if err != nil {
		return err
	}
	if dir == "" || opts.InMemory {
		return fmt.Errorf("%w: a backup is restored into a directory", ErrInvalidOptions)
	}
	in, err := backup.NewReader(r)
	if err != nil {
		return withoutStart(opts.fs, dir, err)
	}
	if !in.Started() {
		if state, err := manifest.Restore(opts.fs, dir); err == nil && state.Doing == 0 {
			return errNoBackup() // nor can it be the rest of one
		}
	}
	if err := makeDir(opts.fs, dir); err != nil {
		return err
	}
	lock, err := opts.fs.Lock(filepath.Join(dir, manifest.LockName), vfs.Exclusive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	run := &restoreRun{ctx: ctx, in: in, fs: opts.fs, dir: dir, log: opts.Logger}
	if err := run.admit(); err != nil {
		return err
	}
	return run.run()
}

// withoutStart is the error of a stream whose beginning could not be read: if it was to
// go on with a restore, that is where it was.
func withoutStart(fsys vfs.FS, dir string, err error) error {
	state, stateErr := manifest.Restore(fsys, dir)
	if stateErr == nil && state.Doing != 0 {
		return &RestoreError{Dir: dir, Offset: state.Offset, Err: err}
	}
	return err
}

// A RestoreError says how far a restore got that did not end.
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

// refuseUnfinished returns an error if a restore into the directory has not ended.
func (d *DB) refuseUnfinished() error {
	state, err := manifest.Restore(d.fs, d.dir)
	if err != nil || state.Doing == 0 {
		return err
	}
	giveUp := "or remove the directory"
	if state.Done != 0 {
		giveUp = "or remove the file " + manifest.RestoreName + " there, which leaves the store as of the backup before"
	}
	return fmt.Errorf("%w: the one into %s has come to offset %d of its stream; go on with Restore, %s",
		ErrRestoreUnfinished, d.dir, state.Offset, giveUp)
}
