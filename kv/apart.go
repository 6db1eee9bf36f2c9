package kv

import (
	"errors"
	"io/fs"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// Values that lie apart are found in two steps: a table or memtable has a handle, and a blob file of the same
// version, or one that the memtable holds, has the value.
// What asks for less than the value, its size or whether it is there, ends at the handle,
// and so does what a tombstone, an expiry or a newer version hides.

// appendApart appends to dst the value of key that a handle leads to, past the cache.
func (d *DB) appendApart(dst []byte, v *version.Version, key []byte, h blob.Handle) ([]byte, error) {
	r, err := d.blobReader(v, h.File)
	if err != nil {
		return dst, err
	}
	return r.AppendValue(dst, key, h)
}

// appendCached is appendApart for a lookup, which may find the value in the cache, and keeps it there.
func (d *DB) appendCached(dst []byte, v *version.Version, key []byte, h blob.Handle, c *apartCounters) ([]byte, error) {
	r, err := d.blobReader(v, h.File)
	if err != nil {
		return dst, err
	}
	out, hit, err := r.AppendCached(dst, key, h)
	switch {
	case err != nil || c == nil:
	case hit:
		c.cacheHits.Add(1)
	default:
		c.count(h)
	}
	return out, err
}

// streamAhead is how many bytes of a value are read ahead that is read piece by piece, where reads are requests.
const streamAhead = 2 << 20

// openStream returns the value of key that a handle leads to, to be read piece by piece.
func (d *DB) openStream(v *version.Version, key []byte, h blob.Handle) (*blob.Stream, error) {
	r, err := d.blobReader(v, h.File)
	if err != nil {
		return nil, err
	}
	return r.OpenAhead(key, h, streamAhead)
}

// blobReader returns the reader of a blob file.
func (d *DB) blobReader(v *version.Version, num uint64) (*blob.Reader, error) {
	if b := v.Blob(num); b != nil {
		r, err := b.Open(&d.blobs)
		if d.follower == nil && errors.Is(err, fs.ErrNotExist) { // else the view may be stale
			err = &CorruptionError{File: d.blobPath(num), Offset: -1, Hint: d.hint(), What: "a blob file", Cause: err}
		}
		return r, err
	}
	b := d.held.get(num)
	if b == nil {
		return nil, &CorruptionError{File: d.path(manifest.FileBlob, num), Offset: -1, Hint: d.hint(),
			What: "a value is said to be there, and no such blob file is the store's"}
	}
	return b.Open(&d.blobs)
}

// handleOf returns the handle of an entry, and its expiry if it has one.
func handleOf(key, value []byte, kind base.Kind) (h blob.Handle, expiry uint64, err error) {
	if h, expiry, err = blob.HandleOf(kind, value); err != nil {
		err = &CorruptionError{Offset: -1, What: "an entry of key " +
			base.InternalKey{User: key, Trailer: base.MakeTrailer(0, kind)}.String(), Cause: err}
	}
	return h, expiry, err
}

// answerApart is answer for an entry with a handle. The value is read, if the entry is to be seen, in the
// place of what has the handle.
func (l *lookup) answerApart(stored []byte, trailer base.Trailer) (done bool, err error) {
	h, expiry, err := handleOf(l.key, stored, trailer.Kind())
	if err != nil {
		return false, err
	}
	if trailer.SeqNum() < l.cover || trailer.Kind().Expires() && expiry <= l.d.now() {
		return l.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindDelete)), nil
	}
	if !l.chain.begun && (l.stream != nil || !l.want || l.sizeOnly) {
		if l.stream != nil {
			*l.stream = h
		}
		l.found, l.expiry, l.skipped, l.size = true, expiry, true, int(h.Size)
		return true, nil
	}
	if l.explain != nil && l.explainApart(h) {
		return l.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindSet)), nil
	}
	var c *apartCounters
	if l.stripe != nil {
		c = &l.stripe.apart
	}
	dst, err := l.d.appendCached(l.dst, l.version, l.key, h, c)
	if err != nil {
		return false, err
	}
	value := dst[len(l.dst):]
	l.dst = dst // as of an operand, it stays where it is
	if !l.chain.begun {
		l.expiry = expiry
	}
	return l.answer(value, base.MakeTrailer(trailer.SeqNum(), base.KindSet)), nil
}

// readApart returns what reads values for a pass over a version.
func (d *DB) readApart(v *version.Version) func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
	return func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
		h, _, err := handleOf(k.User, value, k.Kind())
		if err != nil {
			return dst, err
		}
		return d.appendApart(dst, v, k.User, h)
	}
}

// readForOperands is readApart for a pass that combines operands with the values. A value that is too long for an entry
// which is made of operands stays under them, unread; so does one that takes more than what a MemoryLimit has for it.
func (d *DB) readForOperands(v *version.Version) func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
	read, limit := d.readApart(v), min(d.operands.limit(), d.opts.maxFolded())
	return func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
		if h, _, err := handleOf(k.User, value, k.Kind()); err == nil && h.Size > limit {
			return dst, iterator.ErrStaysApart
		}
		return read(dst, k, value)
	}
}

// passMemory is how many bytes a compaction reads ahead of the blob files from which it copies values.
const passMemory = 16 << 20

// openApart returns what opens values of a version piece by piece, for one goroutine that goes through its blob files
// from front to back: each value is to be read before the next of the same file is opened. So many files share the
// memory for what is read ahead where reads are requests.
func (d *DB) openApart(v *version.Version, files int) func(key []byte, h blob.Handle) (*blob.Stream, error) {
	passes := map[uint64]*blob.Reader{}
	return func(key []byte, h blob.Handle) (*blob.Stream, error) {
		r := passes[h.File]
		if r == nil {
			of, err := d.blobReader(v, h.File)
			if err != nil {
				return nil, err
			}
			r = of.Pass(passMemory / max(files, 1))
			passes[h.File] = r
		}
		return r.OpenStream(key, h)
	}
}

// Sizes of a blob file at which the next is begun: so that a store has some sixty, of which it can have the emptiest
// collected, and a large one no more than thousands.
const (
	smallestBlob = 4 << 20
	blobSize     = 64 << 20
	fewBlobs     = 64
	manyBlobs    = 2048
)

// blobSizeFor returns the size of new blob files.
func (d *DB) blobSizeFor(v *version.Version) int64 {
	if d.opts.blobSize > 0 {
		return d.opts.blobSize
	}
	live := int64(v.BlobTotals().LiveBytes)
	return max(min(max(live/fewBlobs, smallestBlob), blobSize), live/manyBlobs)
}

// separation says which values of a flush or compaction, which is for a level, go into blob files.
func (d *DB) separation(v *version.Version, level int) tablemeta.Separation {
	return tablemeta.Separation{From: max(d.opts.SeparateFrom, 0), TargetSize: d.blobSizeFor(v),
		Compression: d.opts.LevelCompression[level],
		ID:          func(num uint64) uint64 { return d.blobID(v, num) }}
}
