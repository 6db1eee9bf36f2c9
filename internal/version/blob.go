package version

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Blob is a blob file of the store.
type Blob struct {
	manifest.BlobFile
	listed

	reader  atomic.Pointer[blob.Reader]
	opening sync.Mutex // held to store reader
}

// leastBlob is the size of a blob file without records.
const leastBlob = blob.MinSize

// recordBytes returns the bytes of all records.
func (b *Blob) recordBytes() uint64 { return uint64(b.Size) - leastBlob }

// A BlobCache opens the blob files of a store. A reader of one has no memory except the values in the cache. So only
// the open file could be released, and OpenFile may bound those.
type BlobCache struct {
	Path     func(num uint64) string
	OpenFile func(name string) (vfs.ReadFile, error)
	Hint     string // for errors of damage: the command that looks further
	Values   blob.Cache
}

// Verify reads the whole file, and calls each for each record.
func (b *Blob) Verify(c *BlobCache, each func() error) error {
	r, err := b.Open(c)
	if err != nil {
		return err
	}
	return r.Verify(b.Num, func(blob.Handle, blob.Record) error { return each() })
}

// Open returns the file's reader. It reads nothing of the file, but asks its size.
func (b *Blob) Open(c *BlobCache) (*blob.Reader, error) {
	if r := b.reader.Load(); r != nil {
		return r, nil
	}
	b.opening.Lock()
	defer b.opening.Unlock()
	if r := b.reader.Load(); r != nil {
		return r, nil
	}
	name := c.Path(b.Num)
	f, err := c.OpenFile(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	var r *blob.Reader
	if err == nil {
		r, err = blob.NewReader(f, size, blob.ReaderOptions{Name: name, Hint: c.Hint, ID: b.ID, Size: b.Size,
			Records: b.Records, Cache: c.Values})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b.reader.Store(r)
	return r, nil
}

// OpenUnfinished returns a blob file, to be read, that is being written and has its header: what is given to it later
// can be read too, through what reader returns for the open file. Only its number and its id are known.
func OpenUnfinished(num uint64, c *BlobCache, reader func(vfs.ReadFile) vfs.ReadFile) (*Blob, error) {
	name := c.Path(num)
	f, err := c.OpenFile(name)
	if err != nil {
		return nil, err
	}
	f = reader(f)
	r, _, err := blob.OpenUnfinished(f, math.MaxInt64/2, blob.ReaderOptions{Name: name, Hint: c.Hint})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := &Blob{BlobFile: manifest.BlobFile{Num: num, ID: r.ID()}}
	b.reader.Store(r)
	return b, nil
}

// Close closes the file, which must not be in use any more.
func (b *Blob) Close() error {
	b.opening.Lock()
	defer b.opening.Unlock()
	if r := b.reader.Swap(nil); r != nil {
		return r.Close()
	}
	return nil
}
