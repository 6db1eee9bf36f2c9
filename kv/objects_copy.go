package kv

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A wholeFS is a file system that gives sorted files and blob files whole and verified. Files are copied from it where
// bytes may be damaged on their way (vfs.Rereader). To verify a file and then to read it once more would copy bytes
// that were not verified.
type wholeFS struct {
	vfs.FS
	d   *DB
	ids map[string]uint64 // of the version's files, by their names: another file in the place of one is damage
}

// copySource returns the file system from which a version's files are copied.
func (d *DB) copySource(v *version.Version) vfs.FS {
	if d.opts.Objects == nil {
		return d.fs
	}
	ids := map[string]uint64{}
	for b := range v.Blobs() {
		ids[b.Name()] = b.ID
	}
	v.All(func(_ int, t *version.Table) { ids[t.Name()] = t.ID })
	return wholeFS{d.fs, d, ids}
}

// Open implements vfs.FS. A sorted file or a blob file is in memory until it is closed.
func (w wholeFS) Open(name string) (vfs.ReadFile, error) {
	f, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	verify := w.verifyTable
	switch kind, _ := manifest.ParseFileName(filepath.Base(name)); kind {
	case manifest.FileTable:
	case manifest.FileBlob:
		verify = w.verifyBlob
	default:
		return f, nil
	}
	read := func(readAt func(p []byte, off int64) (int, error)) (wholeFile, error) {
		whole, err := readWhole(name, f, readAt)
		if err == nil {
			err = verify(name, whole)
		}
		return whole, err
	}
	whole, err := read(f.ReadAt)
	damaged := errors.Is(err, base.ErrCorruption) || errors.Is(err, sstable.ErrNewerFormat)
	if again, may := f.(vfs.Rereader); may && damaged {
		whole, err = read(again.ReadAgain)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return whole, nil
}

// wholePart is how many bytes of a file are asked for at a time.
const wholePart = 8 << 20

// readWhole reads a file by readAt.
func readWhole(name string, f vfs.ReadFile, readAt func(p []byte, off int64) (int, error)) (wholeFile, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make(wholeFile, size)
	for at := 0; at < len(b); at += wholePart {
		part := b[at:min(at+wholePart, len(b))]
		n, err := readAt(part, int64(at))
		if n < len(part) && errors.Is(err, io.EOF) {
			return nil, base.Corruptf(name, int64(at+n), "the file ends, and is to have %d bytes", size)
		}
		if n < len(part) {
			return nil, fmt.Errorf("siftkv: read %s at offset %d: %w", name, at, err)
		}
	}
	return b, nil
}

func (w wholeFS) verifyTable(name string, b wholeFile) error {
	r, err := sstable.NewReader(b, int64(len(b)), &sstable.ReaderOptions{Name: name,
		Hint: w.d.opts.hint(w.d.dir), CacheSize: -1,
		Filter: w.d.opts.Filter, Prefix: w.d.opts.Prefix, AnyExpansion: true,
		ID: w.ids[filepath.Base(name)]})
	if err != nil {
		return err
	}
	return errors.Join(r.Verify(), r.Close())
}

func (w wholeFS) verifyBlob(name string, b wholeFile) error {
	info, err := blob.ReadInfo(b, int64(len(b)), name)
	if err != nil {
		return err
	}
	id := cmp.Or(w.ids[filepath.Base(name)], info.ID)
	r, err := blob.NewReader(b, int64(len(b)), blob.ReaderOptions{Name: name, Hint: w.d.opts.hint(w.d.dir), ID: id})
	if err != nil {
		return err
	}
	return r.Verify(0, nil)
}

// A wholeFile is a file in memory.
type wholeFile []byte

// ReadAt implements vfs.ReadFile.
func (b wholeFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size implements vfs.ReadFile.
func (b wholeFile) Size() (int64, error) { return int64(len(b)), nil }

// Close implements vfs.ReadFile.
func (b wholeFile) Close() error { return nil }
