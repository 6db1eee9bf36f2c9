package filelist

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
)

// A WriterID is the writer of a sorted file or a blob file, in a branch. The random nonce tells it from a writer with
// the same epoch in a copy of the object store. So no two files have the same name, in any copy.
type WriterID struct {
	Prefix BranchPrefix
	Epoch  uint64
	Nonce  uint64
}

// A File is a sorted file, or a blob file. Both have their numbers from one counter, so that in a store a number is
// that of one file.
type File struct {
	WriterID
	Size int64
	Blob bool
}

// A NumberedFile is a file with its number.
type NumberedFile struct {
	File
	Num uint64
}

// Endings of the keys of both.
const (
	tableSuffix = ".sst"
	blobSuffix  = ".blob"
)

// Key returns the key of the file with a number.
func (f File) Key(num uint64) string {
	suffix := tableSuffix
	if f.Blob {
		suffix = blobSuffix
	}
	return fmt.Sprintf("%s%06d-%d-%016x%s", f.Prefix.Files(), num, f.Epoch, f.Nonce, suffix)
}

// Name returns the name that the file with a number has in the store's directory.
func (f File) Name(num uint64) string {
	if f.Blob {
		return manifest.FileName(manifest.FileBlob, num)
	}
	return manifest.FileName(manifest.FileTable, num)
}

// ParseFile is the inverse of File.Key, for the files of one branch. The size is 0.
func (p BranchPrefix) ParseFile(key string) (num uint64, f File, ok bool) {
	name, ok := strings.CutPrefix(key, p.Files())
	f.Prefix = p
	name, f.Blob = strings.CutSuffix(name, blobSuffix)
	name, table := strings.CutSuffix(name, tableSuffix)
	if !ok || f.Blob == table {
		return 0, File{}, false
	}
	if _, err := fmt.Sscanf(name, "%d-%d-%x", &num, &f.Epoch, &f.Nonce); err != nil || f.Key(num) != key {
		return 0, File{}, false
	}
	return num, f, true
}
