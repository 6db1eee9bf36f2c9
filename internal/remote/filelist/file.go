package filelist

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A WriterID is the writer of a stored file, in a branch. The random nonce tells it from a writer with
// the same epoch in a copy of the object store. So no two files have the same name, in any copy.
type WriterID struct {
	Prefix BranchPrefix
	Epoch  uint64
	Nonce  uint64
}

// kinds are those of stored files, in the order in which a list has them.
var kinds = [...]manifest.FileKind{manifest.FileTable, manifest.FileBlob, manifest.FileKept}

// Stored reports whether files of a kind are objects of their own.
func Stored(kind manifest.FileKind) bool { return slices.Contains(kinds[:], kind) }

// A File is a stored file: a sorted file, a blob file, or a copy of logs that is kept for slots. All have their numbers
// from one counter, so that in a store a number is that of one file.
type File struct {
	WriterID
	Size int64
	Kind manifest.FileKind
}

// A NumberedFile is a file with its number.
type NumberedFile struct {
	File
	Num uint64
}

// Key returns the key of the file with a number. It ends as the name does.
func (f File) Key(num uint64) string {
	return fmt.Sprintf("%s%06d-%d-%016x%s", f.Prefix.Files(), num, f.Epoch, f.Nonce, path.Ext(f.Name(num)))
}

// Name returns the name that the file with a number has in the store's directory.
func (f File) Name(num uint64) string { return manifest.FileName(f.Kind, num) }

// ParseFile is the inverse of File.Key, for the files of one branch. The size is 0.
func (p BranchPrefix) ParseFile(key string) (num uint64, f File, ok bool) {
	name, ok := strings.CutPrefix(key, p.Files())
	f.Prefix = p
	for _, f.Kind = range kinds {
		_, err := fmt.Sscanf(name, "%d-%d-%x", &num, &f.Epoch, &f.Nonce)
		if ok && err == nil && f.Key(num) == key {
			return num, f, true
		}
	}
	return 0, File{}, false
}
