package survey

import (
	"cmp"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Recognize returns nil if one of the named files of dir has a mark of a store of this package. Other programs have
// files of the same names, so a name proves nothing. The error matches base.ErrNotExist if no name is that of a file
// with a mark, and base.ErrForeignDirectory if no such file has it. Otherwise it says why a file could not be read.
//
// It reads the files in the order of names and stops at the first mark: in an object store every read is a request.
func Recognize(fsys vfs.FS, dir string, names []string) error {
	return (&Store{Dir: dir, fs: fsys}).recognize(names)
}

func (s *Store) recognize(names []string) error {
	found := ""
	var unread error
	for _, name := range names {
		mark, atEnd := markOf(name)
		if mark == "" {
			continue
		}
		has, err := s.hasMark(name, mark, atEnd)
		if has {
			return nil
		}
		found, unread = name, cmp.Or(unread, err)
	}
	switch {
	case unread != nil:
		return unread
	case found == "":
		return fmt.Errorf("%w in %s", base.ErrNotExist, s.Dir)
	}
	return fmt.Errorf("%w: %s has a %s, but no file in it bears a mark of this store; "+
		"give the store a directory of its own", base.ErrForeignDirectory, s.Dir, found)
}

// markOf returns the bytes with which a file of that name begins, or ends, if it is this store's. The mark of a file
// that has none is empty.
func markOf(name string) (mark string, atEnd bool) {
	switch kind, _ := manifest.ParseFileName(name); kind {
	case manifest.FileCurrent:
		return "siftkv format=", false
	case manifest.FileManifest, manifest.FileWAL:
		return "SIFTWAL\x00", false
	case manifest.FileTable:
		return "SIFTSST\n", true
	case manifest.FileBlob:
		return "SIFTBLB\x00", false
	default:
		return "", false
	}
}

func (s *Store) hasMark(name, mark string, atEnd bool) (has bool, err error) {
	_, err = s.Examine(name, func(f vfs.ReadFile) error {
		size, err := f.Size()
		if err != nil || size < int64(len(mark)) {
			return err
		}
		at := int64(0)
		if atEnd {
			at = size - int64(len(mark))
		}
		b := make([]byte, len(mark))
		n, err := f.ReadAt(b, at)
		has = string(b[:n]) == mark
		return err
	})
	return has, err
}
