package blob

import "github.com/siftkv/siftkv/internal/vfs"

// Pass returns a reader of the same file for one goroutine that reads it from front to back, but may skip records. If a
// read is a request (vfs.PartReader), it prefetches, first a little, then up to a part, as long as the next record is
// near the one before; otherwise it is r. It has at most a part in memory, and at most the larger of most bytes and 128
// KiB. It is valid while r is open, and is not closed.
func (r *Reader) Pass(most int) *Reader {
	f, ok := r.file.(vfs.PartReader)
	if !ok {
		return r
	}
	return r.through(&vfs.Ahead{Size: r.size, Part: min(f.PartSize(), max(most, vfs.FirstWindow))})
}

// OpenAhead is OpenStream of a value that will be read as a whole. If a read is a request (vfs.PartReader), it
// prefetches up to a part of the record, or most bytes, which it has in memory.
func (r *Reader) OpenAhead(key []byte, h Handle, most int) (*Stream, error) {
	f, ok := r.file.(vfs.PartReader)
	if !ok {
		return r.OpenStream(key, h)
	}
	if err := r.admits(h); err != nil {
		return nil, err
	}
	ahead := &vfs.Ahead{Size: h.Offset + h.Length, Part: min(f.PartSize(), most), Whole: true}
	return r.through(ahead).OpenStream(key, h)
}

// through returns a reader of the same file through f.
func (r *Reader) through(f *vfs.Ahead) *Reader {
	f.File = r.file
	pass := &Reader{file: f, far: r.far, name: r.name, hint: r.hint, id: r.id, size: r.size}
	if r.again != nil {
		pass.again = f
	}
	return pass
}
