package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// finish makes the directory the store that the stream describes.
func (r *restore) finish() error {
	e, err := r.in.describedStore(r.Check)
	if err != nil || r.again {
		return err
	}
	if err := r.checkFiles(e); err != nil {
		return err
	}
	names, err := r.FS.List(r.Dir)
	if err != nil {
		return err
	}
	num := e.NextFile
	for _, name := range names {
		_, n := manifest.ParseFileName(name)
		num = max(num, n+1)
	}
	e.LogNum, e.NextFile = num, num+1 // a log with the manifest's number: none
	e.Restored = 0
	if r.Published {
		e.Restored = r.state.Doing
	}
	if err := r.directory.Check(); err != nil {
		return err
	}
	m, err := manifest.Create(r.FS, r.Dir, num, e)
	if err != nil {
		return err
	}
	if err := m.Close(); err != nil {
		return err
	}
	if err := r.note(manifest.RestoreState{Done: r.state.Doing, Manifest: num}); err != nil {
		return err
	}
	if !r.Published { // there readers do not register: the next writer gives them time
		r.removeOthers(names, e)
	}
	return nil
}

// checkFiles checks that every table and every blob file is there, the right one and of the right
// size. It reads the tables' tails, and the first and last bytes of blob files.
func (r *restore) checkFiles(e *manifest.Edit) error {
	var errs []error
	ids := map[uint64]uint64{} // of blob files
	for i := range e.AddedBlobs {
		b := &e.AddedBlobs[i]
		ids[b.Num] = b.ID
		errs = append(errs, r.checkFile(manifest.FileBlob, b.Num, b.Size, func(f vfs.ReadFile, name string) error {
			return checkBlob(b, f, name)
		}))
	}
	for i := range e.Added {
		t := &e.Added[i].Table
		errs = append(errs, r.checkFile(manifest.FileTable, t.Num, t.Size, func(f vfs.ReadFile, name string) error {
			return checkTable(t, ids, f, name)
		}))
	}
	return errors.Join(errs...)
}

// checkFile checks a file: if it has its size, with check, which closes it.
func (r *restore) checkFile(kind manifest.FileKind, num uint64, want int64,
	check func(f vfs.ReadFile, name string) error) error {
	name := r.path(kind, num)
	f, err := r.FS.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size != want {
		err = &base.CorruptionError{File: name, Offset: min(size, want),
			What: fmt.Sprintf("the file has %d bytes, and had %d when it was backed up", size, want)}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return check(f, name)
}

// checkTable checks that a table's tail can be read, is the one that the description has, and lists the same references
// to blob files, which have ids by their numbers.
func checkTable(t *manifest.Table, ids map[uint64]uint64, f vfs.ReadFile, name string) error {
	table, err := sstable.NewReader(f, t.Size, &sstable.ReaderOptions{Name: name, CacheSize: -1, TailSize: t.TailSize,
		ID: t.ID, Seq: t.Seq, AnyExpansion: true})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	var described sstable.BlobRefs
	for _, r := range t.Blobs {
		described = append(described, sstable.BlobRef{Num: r.Num, ID: ids[r.Num], Records: r.Records, Bytes: r.Bytes})
	}
	if found := table.Properties().Blobs; !slices.Equal(found, described) {
		err = base.Corruptf(name, -1, "the table that was backed up refers to blob files %v, and this one to %v",
			described, found)
	}
	return errors.Join(err, table.Close())
}

// checkBlob checks that a blob file says of itself what the description does.
func checkBlob(b *manifest.BlobFile, f vfs.ReadFile, name string) error {
	info, err := blob.ReadInfo(f, b.Size, name)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if is := (manifest.BlobFile{Num: b.Num, ID: info.ID, Size: info.Size, Records: info.Records,
		ValueBytes: info.ValueBytes}); is != *b {
		return base.Corruptf(name, -1, "another blob file was backed up: id %#x with %d records, and this has %#x "+
			"with %d", b.ID, b.Records, is.ID, is.Records)
	}
	return nil
}

// removeOthers removes the store's files that the description does not list. If the store
// before is open by OpenReadOnly, or a file cannot be removed, the next Open does it.
func (r *restore) removeOthers(names []string, e *manifest.Edit) {
	if n, _, err := manifest.Readers(r.FS, r.Dir); err != nil || n > 0 {
		r.Log.Info("obsolete files stay: the store may have readers", "dir", r.Dir, "readers", n, "error", err)
		return
	}
	live := map[uint64]bool{}
	for _, f := range describedFiles(e) {
		live[f.Num] = true
	}
	for _, name := range names {
		kind, num := manifest.ParseFileName(name)
		file := kind == manifest.FileTable || kind == manifest.FileBlob
		if file && !live[num] || kind == manifest.FileManifest && num != e.LogNum {
			r.remove(filepath.Join(r.Dir, name))
		}
	}
}

func (r *restore) remove(name string) {
	if err := r.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("an obsolete file could not be removed", "file", name, "error", err)
	}
}
