package version

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A ManifestWriter writes the edits of a store to the manifest in force, and replaces a manifest that is broken or has
// become long. An edit that was written is made. One whose write has failed may be made or not, until the manifest is
// replaced. The files that it adds are kept until then, unless it is certain that it was not made.
//
// The mutex orders edits. The caller holds it for all methods except Position.
type ManifestWriter struct {
	sync.Mutex
	*manifest.Log // nil: there is none yet

	FS       vfs.FS
	Dir      string
	Logger   *slog.Logger
	Cleaner  *Cleaner
	MaxSize  int64
	NewNum   func() uint64                   // returns a number that no file has
	Describe func(v *Version) *manifest.Edit // describes the whole store, at a version
	Check    func() error                    // says why nothing may be written; nil: it may
	Again    func(err error) bool            // reports whether what has failed should be tried again at once
	Retained func(blob uint64) bool          // reports whether the store needs a blob file that no version lists

	orphans []string // files that the manifest may name, or that may be in force themselves
}

// Write makes an edit of version v durable. If it finds no room, it does so in a manifest that takes the other's place,
// which may have more. After an error the manifest must be replaced.
func (w *ManifestWriter) Write(v *Version, e *manifest.Edit) error {
	err := w.Check()
	if err == nil {
		if err = w.Append(e); err != nil && w.Again(err) {
			if err = w.Replace(v, w.NewNum()); err == nil {
				err = w.Append(e)
			}
		}
	}
	if err != nil {
		w.Orphan(e)
	}
	return err
}

// Orphan removes the files of an edit that was not made, or may not be. It does so at once if no manifest names them,
// and otherwise when none can name them any more.
func (w *ManifestWriter) Orphan(e *manifest.Edit) {
	drop := func(name string) { w.orphans = append(w.orphans, name) }
	if w.Torn() {
		drop = w.Cleaner.File
	}
	for _, a := range e.Added {
		moved := slices.ContainsFunc(e.Deleted, func(t manifest.DeletedTable) bool { return t.Num == a.Table.Num })
		if !moved {
			drop(manifest.Path(w.Dir, manifest.FileTable, a.Table.Num))
		}
	}
	for _, p := range e.Slots.Parts {
		if p.Copy {
			drop(manifest.Path(w.Dir, manifest.FileKept, p.Log))
		}
	}
	for _, b := range e.AddedBlobs {
		if !w.Retained(b.Num) {
			drop(manifest.Path(w.Dir, manifest.FileBlob, b.Num))
		}
	}
}

// Rotate replaces a manifest that is longer than MaxSize and has twice the size that it began with. A snapshot has as
// many tables as the store. So it costs no more than the edits before it, however large the store is.
func (w *ManifestWriter) Rotate(v *Version) error {
	if w.Size() <= max(w.MaxSize, 2*w.SnapshotSize()) {
		return nil
	}
	return w.Replace(v, w.NewNum())
}

// Replace puts a manifest in force that describes the store at version v, and closes the one before it.
func (w *ManifestWriter) Replace(v *Version, num uint64) error {
	next, err := w.create(v, num)
	if err != nil && w.Again(err) {
		next, err = w.create(v, w.NewNum())
	}
	if err != nil {
		return err
	}
	old := w.Log
	w.Log = next
	if old != nil {
		name := manifest.Path(w.Dir, manifest.FileManifest, old.Num())
		if err := old.Close(); err != nil {
			// Nothing is lost: the store is described by its successor.
			w.Logger.Warn("a replaced manifest could not be closed", "file", name, "error", err)
		}
		w.orphans = append(w.orphans, name)
	}
	for _, name := range w.orphans {
		w.Cleaner.File(name)
	}
	w.orphans = nil
	return nil
}

func (w *ManifestWriter) create(v *Version, num uint64) (*manifest.Log, error) {
	l, err := manifest.Create(w.FS, w.Dir, num, w.Describe(v))
	if err != nil { // it may be in force for all we know
		w.orphans = append(w.orphans, manifest.Path(w.Dir, manifest.FileManifest, num))
	}
	return l, err
}

// Position returns where the store is in its history.
func (w *ManifestWriter) Position() manifest.Position {
	w.Lock()
	defer w.Unlock()
	if w.Log == nil {
		return manifest.Position{}
	}
	return w.Log.Position()
}
