package repair

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Whole blob files stay as they are. From damaged ones, each readable value that a table has a handle of is copied to a
// new blob file, and the table is written again (values.go). A blob file is known by its id, which the manifest and the
// tables have too: if files have swapped names, the values of one are found in the other.

// unknownID stands for the unknown id of a blob file. Tables have it only until they are written
// again without its values.
const unknownID = 1

// A blobFile is a blob file that there is, or that tables have handles of.
type blobFile struct {
	num   uint64
	id    uint64            // 0: not known
	found *survey.Blob      // the file of its name; nil: there is none, or it is new
	info  manifest.BlobFile // of one that is whole
	whole bool              // it can be kept as it is
	path  string            // of the file with its records; empty: there is none

	reader *blob.Reader // nil: not open
	file   vfs.ReadFile
	size   int64 // of file
	// unfinished says that the file has no footer: it has lost it, or a log was not ended.
	unfinished bool

	lost     *lostValues // nil: none yet
	replaced *lostValues // that show ShowsOther; nil: none yet
	moved    uint64      // values that were copied
}

func (b *blobFile) name() string { return manifest.FileName(manifest.FileBlob, b.num) }

// records returns how many records the file had when it was written; 0 if nothing tells.
func (b *blobFile) records() uint64 {
	if b.found != nil && b.found.Listing != nil {
		return b.found.Listing.Records
	}
	return b.info.Records
}

// findBlobs lists the blob files that there are, and those that the manifest or a table names.
func (r *repairer) findBlobs() {
	r.blobs = map[uint64]*blobFile{}
	if m := r.s.Manifest; m != nil {
		for num, l := range m.Blobs {
			r.blobs[num] = &blobFile{num: num, id: l.ID}
		}
	}
	for i := range r.s.Tables {
		if info := r.s.Tables[i].Info; info != nil {
			for _, ref := range info.Blobs {
				b := r.blob(ref.Num)
				b.id = cmp.Or(b.id, ref.ID)
			}
		}
	}
	byID := map[uint64]*survey.Blob{}
	for i := range r.s.Blobs {
		if f := &r.s.Blobs[i]; f.Present {
			byID[f.ID] = f
			r.blob(f.Num).found = f
		}
	}
	for _, b := range r.blobs {
		own := b.found
		if own != nil && b.id == 0 {
			b.id = own.ID
		}
		switch other := byID[b.id]; {
		case b.id == 0:
		case own != nil && own.ID == b.id && own.Info.ID == b.id && len(own.Damage) == 0:
			b.whole, b.path = true, filepath.Join(r.dir, own.Name)
			b.info = manifest.BlobFile{Num: b.num, ID: own.Info.ID, Size: own.Info.Size, Records: own.Info.Records,
				ValueBytes: own.Info.ValueBytes}
		case own != nil && (own.ID == b.id || own.ID == 0 || other == nil):
			b.path = filepath.Join(r.dir, own.Name)
		case other != nil:
			b.path = filepath.Join(r.dir, other.Name)
		}
	}
}

func (r *repairer) blob(num uint64) *blobFile {
	b := r.blobs[num]
	if b == nil {
		b = &blobFile{num: num}
		r.blobs[num] = b
	}
	return b
}

// blobID returns the id of a blob file that a table refers to, for its list of them.
func (r *repairer) blobID(num uint64) uint64 { return cmp.Or(r.blob(num).id, unknownID) }

// open opens the file with the records of b. It returns nil if there is none, or its bytes are lost.
func (r *repairer) open(b *blobFile) (*blob.Reader, error) {
	if b.reader != nil || b.path == "" {
		return b.reader, nil
	}
	f, err := r.fs.Open(b.path)
	if err == nil {
		var size int64
		if size, err = f.Size(); err == nil {
			b.unfinished, err = blob.Unfinished(onlyReader{f}, size)
		}
		if err == nil {
			b.reader, err = blob.NewReader(onlyReader{f}, size, b.readerOptions())
		}
		if err == nil {
			b.file, b.size = f, size
			return b.reader, nil
		}
		err = errors.Join(err, f.Close())
	}
	if r.s.IsDamage(err) {
		b.path, b.reader = "", nil
		return nil, nil
	}
	return nil, err
}

func (b *blobFile) readerOptions() blob.ReaderOptions {
	return blob.ReaderOptions{Name: b.path, ID: b.id, Unfinished: b.unfinished}
}

func (r *repairer) closeBlobs() error {
	var errs []error
	for _, b := range r.blobs {
		if b.file != nil {
			errs = append(errs, b.file.Close())
			b.file, b.reader = nil, nil
		}
	}
	return errors.Join(errs...)
}

// maxBlobFile is the size in bytes at which a new blob file is followed by another.
const maxBlobFile = 64 << 20

// A valueWriter copies values to new blob files.
type valueWriter struct {
	r    *repairer
	out  *blob.Writer // nil: no file is open
	file vfs.WriteFile
	num  uint64
	last []byte // key
}

// copy copies the value of a key, which was checked, and returns its new handle. Keys that descend begin
// another file.
func (w *valueWriter) copy(src *blob.Reader, key []byte, h blob.Handle) (blob.Handle, error) {
	if w.out != nil && (w.out.Size() >= maxBlobFile || string(key) < string(w.last)) {
		if err := w.finish(); err != nil {
			return h, err
		}
	}
	if w.out == nil {
		if err := w.open(); err != nil {
			return h, err
		}
	}
	w.last = append(w.last[:0], key...)
	s, err := src.OpenStream(key, h)
	if err != nil {
		return h, err
	}
	return w.out.Copy(s)
}

func (w *valueWriter) open() (err error) {
	defer w.r.writeUnread()()
	var path string
	if w.file, w.num, path, err = w.r.create(manifest.FileBlob); err != nil {
		return err
	}
	w.out = blob.NewWriter(w.file, blob.WriterOptions{Num: w.num})
	w.r.blobs[w.num] = &blobFile{num: w.num, id: w.out.ID(), whole: true, path: path}
	return nil
}

func (w *valueWriter) finish() error {
	if w.out == nil {
		return nil
	}
	i, err := w.out.Finish()
	if err == nil {
		err = w.file.Sync()
	}
	err = errors.Join(err, w.file.Close())
	w.r.blobs[w.num].info = manifest.BlobFile{Num: w.num, ID: i.ID, Size: i.Size, Records: i.Records,
		ValueBytes: i.ValueBytes}
	w.out, w.file = nil, nil
	return err
}

// abort closes the open file. It is removed when the repair ends.
func (w *valueWriter) abort() {
	if w.file != nil {
		_ = w.file.Close() // it is removed next
		w.out, w.file = nil, nil
	}
}

// referred returns the blob files that the tables of the repaired store have values in, by number.
func (r *repairer) referred() map[uint64]bool {
	nums := map[uint64]bool{}
	for _, p := range r.pieces {
		for _, ref := range p.t.Blobs {
			nums[ref.Num] = true
		}
	}
	return nums
}

// reportBlobs notes what becomes of the blob files that the store had.
func (r *repairer) reportBlobs() {
	kept := r.referred()
	r.report.Blobs = len(kept)
	for i := range r.s.Blobs {
		f := &r.s.Blobs[i]
		b := r.blob(f.Num)
		switch {
		case !f.Present:
			r.report.file(f.Name, Missing, "")
		case b.whole && kept[f.Num]:
			r.report.file(f.Name, Kept, "")
		case b.moved > 0:
			r.report.file(f.Name, Rewrote, fmt.Sprintf("%d values are in new blob files", b.moved))
		default:
			r.report.file(f.Name, LeftOut, "no table has a value in it")
		}
	}
}
