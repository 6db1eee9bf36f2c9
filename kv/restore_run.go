package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A restoreRun is one call of Restore, with the directory locked.
//
// Files of the stream get their names in the directory as they come; no manifest
// lists them, and the files of the store before stay. A new manifest then makes the
// store that the stream describes, in the one step that every manifest takes. The
// RESTORE file says since before the first file until after that step that a restore
// goes on, and how far it has come: an offset behind which nothing is needed that was
// not durable when it was written.
type restoreRun struct {
	ctx   context.Context
	in    *backup.Reader
	fs    vfs.FS
	dir   string
	log   *slog.Logger
	state manifest.RestoreState
	again bool // the stream has been restored: it is only checked
}

func (r *restoreRun) path(kind manifest.FileKind, num uint64) string {
	return filepath.Join(r.dir, manifest.FileName(kind, num))
}

// admit checks that the stream fits the directory, and notes that it is being
// restored.
func (r *restoreRun) admit() (err error) {
	if r.state, err = manifest.Restore(r.fs, r.dir); err != nil {
		return err
	}
	if !r.in.Started() {
		if r.state.Doing == 0 {
			return errNoBackup()
		}
		r.in.Resume(r.state.Doing, r.state.Offset)
		return nil
	}
	h := r.in.Header()
	if err := r.checkDir(h); err != nil {
		return err
	}
	switch {
	case h.BackupID == r.state.Doing: // it goes on
		return nil
	case h.BackupID == r.state.Done && r.state.Doing == 0:
		r.again = true
		return nil
	case h.Parent == r.state.Done: // 0: a full backup, into a directory without a store
	case h.Parent != 0 && h.Parent == r.state.Doing && h.ParentOffset <= r.state.Offset:
	case h.Parent == 0:
		return fmt.Errorf("%w: this is a full backup, and %s holds a store: give it a directory of its own",
			ErrBackupMismatch, r.dir)
	default:
		return fmt.Errorf("%w: it goes on from offset %d of backup %016x, and %s is at %s", ErrBackupMismatch,
			h.ParentOffset, h.Parent, r.dir, r.place())
	}
	r.state.Doing, r.state.Offset = h.BackupID, 0
	return manifest.SetRestore(r.fs, r.dir, r.state)
}

// place says what has been restored.
func (r *restoreRun) place() string {
	switch {
	case r.state.Doing != 0:
		return fmt.Sprintf("offset %d of backup %016x, which is unfinished", r.state.Offset, r.state.Doing)
	case r.state.Done != 0:
		return fmt.Sprintf("backup %016x", r.state.Done)
	}
	return "no backup: it is empty"
}

// checkDir refuses a directory that is not as a restore left it.
func (r *restoreRun) checkDir(h backup.Header) error {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return err
	}
	num, err := manifest.Current(r.fs, r.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case r.state.Done == 0 && r.state.Doing == 0:
		return fmt.Errorf("%w: %s holds a store that is no restored backup", ErrBackupMismatch, r.dir)
	case num != r.state.Manifest && r.state.Done != 0 && h.BackupID != r.state.Doing:
		return fmt.Errorf("%w: the store in %s has been opened for writing since it was restored", ErrBackupMismatch,
			r.dir)
	}
	if r.state != (manifest.RestoreState{}) {
		return nil
	}
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); kind != manifest.FileLock && kind != manifest.FileTemp &&
			kind != manifest.FileReader {
			return fmt.Errorf("%w: %s holds %q; restore into a directory of its own", ErrForeignDirectory, r.dir, name)
		}
	}
	return nil
}

// run reads the stream to its end.
func (r *restoreRun) run() error {
	err := r.files()
	if err == nil {
		err = r.finish()
	}
	if err == nil || r.again {
		return err
	}
	// What failed may have been to note the offset: what was noted counts.
	if noted, err := manifest.Restore(r.fs, r.dir); err == nil {
		r.state.Offset = noted.Offset // 0 if all is done, and may not be durable
	}
	return &RestoreError{Dir: r.dir, Offset: r.state.Offset, Err: err}
}

func (r *restoreRun) interrupted() error {
	if r.ctx.Err() == nil {
		return nil
	}
	return givenUp(r.ctx, "it was broken off")
}

// files writes the files of the stream that are not there yet.
func (r *restoreRun) files() error {
	for {
		if err := r.interrupted(); err != nil {
			return err
		}
		f, _, ok, err := r.in.NextFile()
		if err != nil || !ok {
			return err
		}
		if r.again || r.in.Offset() <= r.state.Offset {
			continue // the next call reads over it
		}
		if err := r.file(f); err != nil {
			return err
		}
		if err := r.fs.SyncDir(r.dir); err != nil {
			return err
		}
		next := r.state
		next.Offset = r.in.Offset()
		if err := manifest.SetRestore(r.fs, r.dir, next); err != nil {
			return err
		}
		r.state = next
	}
}

// file writes one file. When it returns, its bytes are durable.
func (r *restoreRun) file(f backup.File) (err error) {
	name := r.path(manifest.FileTable, f.Num)
	w, err := r.fs.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, w.Close()); err != nil {
			r.remove(name)
		}
	}()
	for {
		if err := r.interrupted(); err != nil {
			return err
		}
		b, err := r.in.Chunk()
		if err != nil {
			return err
		}
		if b == nil {
			return w.Sync()
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
}

// finish makes the directory the store that the stream describes.
func (r *restoreRun) finish() error {
	e, v, err := describedStore(r.in)
	if err != nil || r.again {
		return err
	}
	if err := r.checkTables(v); err != nil {
		return err
	}
	names, err := r.fs.List(r.dir)
	if err != nil {
		return err
	}
	num := e.NextFile
	for _, name := range names {
		_, n := manifest.ParseFileName(name)
		num = max(num, n+1)
	}
	e.LogNum, e.NextFile = num, num+1 // a log with the manifest's number: none
	m, err := manifest.Create(r.fs, r.dir, num, e)
	if err != nil {
		return err
	}
	if err := m.Close(); err != nil {
		return err
	}
	done := manifest.RestoreState{Done: r.state.Doing, Manifest: num}
	if err := manifest.SetRestore(r.fs, r.dir, done); err != nil {
		return err
	}
	r.removeOthers(names, v, num)
	return nil
}

// checkTables checks that every table is there, the right one and of the right size.
// It reads the tables' tails.
func (r *restoreRun) checkTables(v *version) error {
	var errs []error
	v.all(func(_ int, t *table) {
		if err := r.checkTable(t); err != nil {
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

func (r *restoreRun) checkTable(t *table) error {
	name := r.path(manifest.FileTable, t.Num)
	f, err := r.fs.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size != t.Size {
		err = &CorruptionError{File: name, Offset: min(size, t.Size),
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

// removeOthers removes the store's files that the version does not list. What cannot
// be removed, or may be needed by somebody who has the store of the backup before
// open by OpenReadOnly, is left to the next Open.
func (r *restoreRun) removeOthers(names []string, v *version, manifestNum uint64) {
	if n, _, err := manifest.Readers(r.fs, r.dir); err != nil || n > 0 {
		r.log.Info("obsolete files stay: the store may have readers", "dir", r.dir, "readers", n, "error", err)
		return
	}
	live := map[uint64]bool{}
	v.all(func(_ int, t *table) { live[t.Num] = true })
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		if kind == manifest.FileTable && !live[num] || kind == manifest.FileManifest && num != manifestNum {
			r.remove(filepath.Join(r.dir, name))
		}
	}
}

func (r *restoreRun) remove(name string) {
	if err := r.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("an obsolete file could not be removed", "file", name, "error", err)
	}
}
