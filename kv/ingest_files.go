package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ingestCopyBytes is one read of a file that is copied, and the distance between two
// looks at the context.
const ingestCopyBytes = 1 << 20

// source is the file system of the paths: a store in memory takes its files from
// the operating system's.
func (in *ingest) source() vfs.FS {
	if in.d.opts.InMemory {
		return vfs.OS
	}
	return in.d.fs
}

// announce takes numbers for so many files, and puts a file into the directory that
// has them in its name: should the manifest be lost after a crash, nothing else tells
// a part of an ingest from tables that the store had.
func (in *ingest) announce(files int) error {
	last := in.d.nextFile.Add(uint64(files)) - 1
	in.numbers = manifest.Ingest{First: last - uint64(files) + 1, Last: last}
	f, err := in.d.fs.Create(filepath.Join(in.d.dir, in.numbers.FileName()))
	if err != nil {
		return err
	}
	in.announced = true
	return errors.Join(f.Close(), in.d.fs.SyncDir(in.d.dir))
}

// settled removes what announce left, durably. The files are in the manifest, or gone.
func (in *ingest) settled() {
	if !in.announced {
		return
	}
	name := filepath.Join(in.d.dir, in.numbers.FileName())
	err := in.d.fs.Remove(name)
	if err == nil {
		err = in.d.fs.SyncDir(in.d.dir)
	}
	if err != nil {
		in.d.log.Warn("the mark of an ingest that has ended could not be removed", "file", name, "error", err)
	}
}

// bring gives the file at path a number and a name in the store, and examines it
// there: what was checked is what the store has.
func (in *ingest) bring(path string, num uint64) error {
	if err := in.interrupted(); err != nil {
		return err
	}
	in.brought = append(in.brought, num)
	name := in.d.path(manifest.FileTable, num)
	linked, err := in.link(path, name)
	if err == nil && !linked {
		err = in.copy(path, name)
	}
	if err != nil {
		return fmt.Errorf("siftkv: ingest %s: %w", path, err)
	}
	taken := len(in.files)
	if err := in.examine(path, name, num); err != nil || len(in.files) > taken {
		return err
	}
	return in.d.fs.Remove(name) // there is nothing in it
}

// link gives the file a second name and makes its bytes durable, or reports that it
// has to be copied.
func (in *ingest) link(path, name string) (linked bool, err error) {
	fsys := in.source()
	syncer, ok := fsys.(vfs.FileSyncer)
	if !ok || fsys != in.d.fs || in.opts.Copy {
		return false, nil
	}
	if fsys == vfs.OS { // a second name of a symbolic link would be one too
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return false, err
		}
	}
	if linked = fsys.Link(path, name) == nil; !linked {
		return false, nil
	}
	if linked = syncer.SyncFile(name) == nil; !linked {
		err = fsys.Remove(name) // or the copy would go into the original
	}
	return linked, err
}

// copy copies the file, durably.
func (in *ingest) copy(path, name string) (err error) {
	r, err := in.source().Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	size, err := r.Size()
	if err != nil {
		return err
	}
	w, err := in.d.fs.Create(name)
	if err != nil {
		return err
	}
	from := io.NewSectionReader(r, 0, size)
	for copied := int64(0); err == nil && copied < size; copied += ingestCopyBytes {
		if err = in.interrupted(); err == nil {
			_, err = io.CopyN(w, from, min(ingestCopyBytes, size-copied))
		}
	}
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// examine checks a file that was brought in and describes it. An empty one is left
// out. Errors name the file at path.
func (in *ingest) examine(path, name string, num uint64) (err error) {
	f, err := in.d.fs.Open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	var r *sstable.Reader
	if err == nil {
		r, err = sstable.NewReader(f, size,
			&sstable.ReaderOptions{Name: path, CacheSize: -1, Filter: in.d.opts.Filter, Prefix: in.d.opts.Prefix})
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	info, err := r.Info()
	if err != nil {
		return err
	}
	tombs := r.Tombstones().Clip(nil, nil, nil)
	if err := in.admit(path, info, tombs); err != nil {
		return err
	}
	if !in.opts.SkipVerify {
		if err := in.verify(path, r); err != nil {
			return err
		}
	}
	if info.Entries+info.RangeDeletes > 0 {
		in.files = append(in.files, ingestedFile{path, tablemeta.Of(num, info, tombs)})
	}
	return nil
}

// admit refuses a file by its properties and range tombstones.
func (in *ingest) admit(path string, info *sstable.FileInfo, tombs []rangedel.Tombstone) error {
	if info.LargestSeq != 0 {
		return fmt.Errorf("%w: %s has sequence numbers up to %d: it is a store's own file; write one with sstable.Writer", ErrNotIngestible, path, info.LargestSeq)
	}
	if info.Merges+info.Expiring > 0 {
		return fmt.Errorf("%w: %s has %d merge operands and %d values that expire", ErrNotIngestible, path,
			info.Merges, info.Expiring)
	}
	keys := [][]byte{info.Smallest, info.Largest}
	for _, t := range tombs {
		keys = append(keys, t.Start, t.End)
	}
	for _, k := range keys {
		if err := admitEntry(path, k, nil); err != nil {
			return err
		}
	}
	return nil
}

// verify reads the whole file.
func (in *ingest) verify(path string, r *sstable.Reader) error {
	var last []byte
	n := 0
	return r.VerifyEach(func(k base.InternalKey, value []byte) error {
		if n++; n%4096 == 0 {
			if err := in.interrupted(); err != nil {
				return err
			}
		}
		if n > 1 && bytes.Equal(last, k.User) {
			return fmt.Errorf("%w: %s has %.64q twice", ErrNotIngestible, path, k.User)
		}
		if k.Kind() > base.KindRangeDelete { // whatever the properties say
			return fmt.Errorf("%w: %s has an entry of kind %v under %.64q", ErrNotIngestible, path, k.Kind(), k.User)
		}
		last = append(last[:0], k.User...)
		return admitEntry(path, k.User, value)
	})
}

// admitEntry refuses keys and values that no write could have brought in.
func admitEntry(path string, key, value []byte) error {
	if err := errors.Join(checkKey(key), checkValue(value)); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotIngestible, path, err)
	}
	return nil
}
