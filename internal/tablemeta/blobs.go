package tablemeta

import (
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Separation says which values a Writer puts into blob files. The zero value is none.
type Separation struct {
	From        int              // bytes of the smallest separated value; 0: none is separated
	TargetSize  int64            // of a blob file, in bytes; 0: there is one
	Compression compression.Kind // of values; Snappy by default
	ID          func(num uint64) uint64

	// Candidates are the blob files to collect: when a handle of one is added, its record is copied into a new file, as
	// stored and piece by piece, from the stream that Open returns. They never change.
	Candidates map[uint64]bool
	Open       func(key []byte, h blob.Handle) (*blob.Stream, error)
}

// blobFiles are the blob files that a Writer writes, one after the other.
type blobFiles struct {
	out   *blob.Writer // nil: none is open
	file  vfs.WriteFile
	ids   map[uint64]uint64 // of all, by number
	files []manifest.BlobFile
	value []byte // of the entry in place of the one that was given

	relocated uint64 // bytes of records that were copied
}

// A table that refers to maxReferred bytes in blob files is full, however small it is: blob garbage collection moves
// all that a table refers to, and should not have to move more for one.
const maxReferred = 1 << 30

// separates reports whether a value goes into a blob file.
func (w *Writer) separates(kind base.Kind, value []byte) bool {
	switch kind {
	case base.KindSet:
	case base.KindSetTTL:
		value = value[min(base.ExpirySize, len(value)):]
	default:
		return false
	}
	return w.Separation.From > 0 && len(value) >= w.Separation.From
}

// separate puts a value into a blob file, and returns the entry that the table gets. The value is
// valid until the next call.
func (w *Writer) separate(k base.InternalKey, value []byte) (base.InternalKey, []byte, error) {
	b := &w.blobs
	if err := w.nextBlob(); err != nil {
		return k, nil, err
	}
	kind, expiry := base.KindSetSeparated, uint64(0)
	b.value = b.value[:0]
	if k.Kind() == base.KindSetTTL {
		expiry, value, _ = base.CutExpiry(value)
		kind, b.value = base.KindSetTTLSeparated, base.AppendExpiry(b.value, expiry)
	}
	h, err := b.out.Add(k.User, k.SeqNum(), expiry, value)
	b.value = h.Append(b.value)
	return base.MakeKey(k.User, k.SeqNum(), kind), b.value, err
}

// nextBlob makes sure that a blob file with room is open.
func (w *Writer) nextBlob() error {
	b := &w.blobs
	if b.out != nil && w.Separation.TargetSize > 0 && b.out.Size() >= w.Separation.TargetSize {
		if err := w.closeBlob(); err != nil {
			return err
		}
	}
	if b.out == nil {
		return w.openBlob()
	}
	return nil
}

func (w *Writer) openBlob() error {
	b := &w.blobs
	num := w.NewNum()
	name := filepath.Join(w.Dir, manifest.FileName(manifest.FileBlob, num))
	f, err := w.FS.Create(name)
	if err != nil {
		return err
	}
	w.names = append(w.names, name)
	b.file = w.Wrap(f)
	b.out = blob.NewWriter(b.file, blob.WriterOptions{Num: num, Compression: w.Separation.Compression})
	if b.ids == nil {
		b.ids = map[uint64]uint64{}
	}
	b.ids[num] = b.out.ID()
	return nil
}

// closeBlob finishes the open blob file, if there is one, and makes its bytes durable.
func (w *Writer) closeBlob() error {
	b := &w.blobs
	if b.out == nil {
		return nil
	}
	info, err := b.out.Finish()
	if err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		return err
	}
	err = b.file.Close()
	b.out, b.file = nil, nil
	b.files = append(b.files, manifest.BlobFile{Num: info.Num, ID: info.ID, Size: info.Size, Records: info.Records,
		ValueBytes: info.ValueBytes})
	return err
}

// Blobs returns the blob files that the tables of Finish have values in and that were written with them.
func (w *Writer) Blobs() []manifest.BlobFile { return w.blobs.files }

// blobID returns the id of a blob file that entries refer to.
func (w *Writer) blobID(num uint64) uint64 {
	if id, ok := w.blobs.ids[num]; ok {
		return id
	}
	if w.Separation.ID == nil {
		return 0
	}
	return w.Separation.ID(num)
}
