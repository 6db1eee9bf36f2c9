package remote

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
)

// An author is the writer of a sorted file or a blob file, in a branch. The random nonce tells it from a writer with
// the same epoch in a copy of the object store. So no two files have the same name, in any copy.
type author struct {
	site  site
	epoch uint64
	nonce uint64
}

// A file is a sorted file, or a blob file. Both have their numbers from one counter, so that in a store a number is
// that of one file.
type file struct {
	author
	size int64
	blob bool
}

// Endings of the keys of both.
const (
	tableSuffix = ".sst"
	blobSuffix  = ".blob"
)

// object returns the key of the file with a number.
func (f file) object(num uint64) string {
	suffix := tableSuffix
	if f.blob {
		suffix = blobSuffix
	}
	return fmt.Sprintf("%s%06d-%d-%016x%s", f.site.files(), num, f.epoch, f.nonce, suffix)
}

// base returns the name that the file with a number has in the store's directory.
func (f file) base(num uint64) string {
	if f.blob {
		return manifest.FileName(manifest.FileBlob, num)
	}
	return manifest.FileName(manifest.FileTable, num)
}

// parseFile is the inverse of object, for the files of one site. The size is 0.
func (s site) parseFile(key string) (num uint64, f file, ok bool) {
	name, ok := strings.CutPrefix(key, s.files())
	f.site = s
	name, f.blob = strings.CutSuffix(name, blobSuffix)
	name, table := strings.CutSuffix(name, tableSuffix)
	if !ok || f.blob == table {
		return 0, file{}, false
	}
	if _, err := fmt.Sscanf(name, "%d-%d-%x", &num, &f.epoch, &f.nonce); err != nil || f.object(num) != key {
		return 0, file{}, false
	}
	return num, f, true
}
