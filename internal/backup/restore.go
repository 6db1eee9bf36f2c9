package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ErrMismatch is returned when a backup does not fit the directory, or the store.
var ErrMismatch = errors.New("siftkv: the backup does not fit")

// A Target is the directory that Restore writes.
type Target struct {
	FS          vfs.FS
	Dir         string
	Log         *slog.Logger
	Check       func(*manifest.Edit) error // refuses a description that no store has
	Interrupted func() error               // says why to go no further; nil: go on

	// Published is set for a directory in an object store (package remote). There the store is what was
	// published last, and files that were not are gone with the process: see published.go.
	Published bool
	Reader    vfs.FS // of the same directory there, which shows what is there without taking it over
}

// Restore reads the stream of a backup, or what follows an offset in one, and makes the directory the store that it
// describes. With an error it returns an offset of the stream where it can go on, or -1 if the directory is as before.
//
// Files of the stream get their names in the directory at once; no manifest lists them, and the files of the store
// before stay. Then a new manifest, in one step, makes the store that the stream describes. From before the first file
// until after that step, the RESTORE file says that a restore is under way. It has an offset of the stream; everything
// before it was durable when the offset was written.
func Restore(from io.Reader, to Target) (offset int64, err error) {
	in, err := NewReader(from)
	if to.Published {
		if err != nil {
			return -1, err
		}
		return restorePublished(in, to)
	}
	state, stateErr := manifest.Restore(to.FS, to.Dir) // now: the read may have waited for another restore
	if err != nil {
		if stateErr == nil && state.Doing != 0 {
			return state.Offset, err // a restore that should go on is where it was
		}
		return -1, err
	}
	if !in.Started() && stateErr == nil && state.Doing == 0 {
		return -1, errNotStarted() // nor can it be the rest of one
	}
	if err := vfs.MkdirAllDurable(to.FS, to.Dir); err != nil {
		return -1, err
	}
	fsys, directory, err := vfs.OpenDirectory(to.FS, to.Dir)
	if err != nil {
		return -1, err
	}
	defer func() { err = errors.Join(err, directory.Close()) }()
	to.FS = fsys
	lock, err := to.FS.Lock(filepath.Join(to.Dir, manifest.LockName), vfs.Exclusive)
	if err != nil {
		return -1, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	r := &restore{Target: to, in: in, directory: directory}
	if err := r.admit(); err != nil {
		return -1, err
	}
	return r.run()
}

// A restore is one call of Restore, with the directory locked.
type restore struct {
	Target
	directory *vfs.Directory // Dir, as it was opened
	in        *Reader
	state     manifest.RestoreState
	again     bool // the stream has been restored: it is only checked
}

func (r *restore) path(kind manifest.FileKind, num uint64) string {
	return filepath.Join(r.Dir, manifest.FileName(kind, num))
}

// admit checks that the stream fits the directory, and notes that it is being restored.
func (r *restore) admit() (err error) {
	if r.state, err = r.readState(); err != nil {
		return err
	}
	if r.state != (manifest.RestoreState{}) && !r.Published {
		// The call before may have failed, or died, before the RESTORE file was durable, or the
		// names of the files that it vouches for. The contents of the files are durable.
		if err := r.FS.SyncDir(r.Dir); err != nil {
			return err
		}
	}
	if !r.in.Started() {
		if r.state.Doing == 0 {
			return errNotStarted()
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
			ErrMismatch, r.Dir)
	default:
		return fmt.Errorf("%w: it goes on from offset %d of backup %016x, and %s is at %s", ErrMismatch,
			h.ParentOffset, h.Parent, r.Dir, r.place())
	}
	return r.note(manifest.RestoreState{Done: r.state.Done, Manifest: r.state.Manifest, Doing: h.BackupID})
}

// note stores the state, to go on after a crash.
func (r *restore) note(s manifest.RestoreState) error {
	if !r.Published {
		if err := manifest.SetRestore(r.FS, r.Dir, s); err != nil {
			return err
		}
	}
	r.state = s
	return nil
}

// place says what has been restored.
func (r *restore) place() string {
	switch {
	case r.state.Doing != 0:
		return fmt.Sprintf("offset %d of backup %016x, which is unfinished", r.state.Offset, r.state.Doing)
	case r.state.Done != 0:
		return fmt.Sprintf("backup %016x", r.state.Done)
	}
	return "no backup: it is empty"
}

// checkDir refuses a directory that is not as a restore left it.
func (r *restore) checkDir(h Header) error {
	names, err := r.FS.List(r.Dir)
	if err != nil {
		return err
	}
	num, err := manifest.Current(r.FS, r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case r.state.Done == 0 && r.state.Doing == 0:
		return fmt.Errorf("%w: %s holds a store that is no restored backup, or has been written to since", ErrMismatch,
			r.Dir)
	case num != r.state.Manifest && r.state.Done != 0 && h.BackupID != r.state.Doing:
		return fmt.Errorf("%w: the store in %s has been opened for writing since it was restored", ErrMismatch,
			r.Dir)
	}
	if r.Published && slices.ContainsFunc(names, isLog) {
		return fmt.Errorf("%w: the store in %s has been written to since it was restored", ErrMismatch, r.Dir)
	}
	if r.state != (manifest.RestoreState{}) {
		return nil
	}
	for _, name := range names {
		if kind, _ := manifest.ParseFileName(name); kind != manifest.FileLock && kind != manifest.FileTemp &&
			kind != manifest.FileReader {
			return fmt.Errorf("%w: %s holds %q; restore into a directory of its own", base.ErrForeignDirectory, r.Dir,
				name)
		}
	}
	return nil
}

// isLog reports whether a name is that of a log. A restored store has none.
func isLog(name string) bool {
	kind, _ := manifest.ParseFileName(name)
	return kind == manifest.FileWAL
}

func (r *restore) run() (offset int64, err error) {
	if err = r.files(); err == nil {
		err = r.finish()
	}
	if err == nil || r.again {
		return -1, err
	}
	if r.Published {
		return 0, err // nothing of it is left
	}
	// Noting the offset may have failed: the noted one counts.
	if noted, err := manifest.Restore(r.FS, r.Dir); err == nil {
		r.state.Offset = noted.Offset // 0 if all is done, and may not be durable
	}
	return r.state.Offset, err
}

// files writes the files of the stream that are not there yet.
func (r *restore) files() error {
	for {
		if err := r.Interrupted(); err != nil {
			return err
		}
		if err := r.directory.Check(); err != nil {
			return err
		}
		f, ok, err := r.in.NextFile()
		if err != nil || !ok {
			return err
		}
		if r.again || r.in.Offset() <= r.state.Offset {
			continue // the next call reads over it
		}
		if err := r.file(f); err != nil {
			return err
		}
		if err := r.FS.SyncDir(r.Dir); err != nil {
			return err
		}
		next := r.state
		next.Offset = r.in.Offset()
		if err := r.note(next); err != nil {
			return err
		}
	}
}

// file writes one file. When it returns, its bytes are durable.
func (r *restore) file(f Sent) (err error) {
	name := r.path(f.Kind, f.Num)
	w, err := r.FS.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, w.Close()); err != nil {
			r.remove(name)
		}
	}()
	for {
		if err := r.Interrupted(); err != nil {
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
