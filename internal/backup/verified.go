package backup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A VerifiedFS is a file system that gives sorted files and blob files whole and verified. Files are copied from it
// where bytes may be damaged on their way (vfs.Rereader). To verify a file and then to read it once more would copy
// bytes that were not verified.
type VerifiedFS struct {
	vfs.FS
	IDs    map[string]uint64 // of files by their base names: another file in the place of one is damage
	Hint   string            // for errors about damage
	Filter filterpolicy.Policy
	Prefix filterpolicy.Prefix
}

// Open implements vfs.FS. A sorted file or a blob file is in memory until it is closed.
func (w VerifiedFS) Open(name string) (vfs.ReadFile, error) {
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
	read := func(readAt func(p []byte, off int64) (int, error)) ([]byte, error) {
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
	return vfs.FileOf(whole), nil
}

// wholePart is how many bytes of a file are asked for at a time.
const wholePart = 8 << 20

func readWhole(name string, f vfs.ReadFile, readAt func(p []byte, off int64) (int, error)) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	for at := 0; at < len(b); at += wholePart {
		part := b[at:min(at+wholePart, len(b))]
		n, err := readAt(part, int64(at))
		if n < len(part) && errors.Is(err, io.EOF) {
			return nil, base.Corruptf(name, int64(at+n), "the file ends: it must have %d bytes", size)
		}
		if n < len(part) {
			return nil, fmt.Errorf("siftkv: read %s at offset %d: %w", name, at, err)
		}
	}
	return b, nil
}

func (w VerifiedFS) verifyTable(name string, b []byte) error {
	r, err := sstable.NewReader(vfs.FileOf(b), int64(len(b)), &sstable.ReaderOptions{Name: name, Hint: w.Hint,
		CacheSize: -1, Filter: w.Filter, Prefix: w.Prefix, AnyExpansion: true, ID: w.IDs[filepath.Base(name)]})
	if err != nil {
		return err
	}
	return errors.Join(r.Verify(), r.Close())
}

func (w VerifiedFS) verifyBlob(name string, b []byte) error {
	info, err := blob.ReadInfo(vfs.FileOf(b), int64(len(b)), name)
	if err != nil {
		return err
	}
	id := cmp.Or(w.IDs[filepath.Base(name)], info.ID)
	r, err := blob.NewReader(vfs.FileOf(b), int64(len(b)), blob.ReaderOptions{Name: name, Hint: w.Hint, ID: id})
	if err != nil {
		return err
	}
	return r.Verify(0, nil)
}
