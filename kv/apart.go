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

// Blob values are found in two steps. A table or memtable has a handle; a blob file of the same version, or one that
// the memtable holds, has the value. Lookups of less than the value (its size, or whether it exists) end at the
// handle. So do those that a tombstone, an expiry or a newer version answers.

// appendApart appends to dst the value of key that a handle refers to, without the cache.
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

// streamAhead is how many bytes a stream of a value prefetches where reads are requests.
const streamAhead = 2 << 20

// openStream returns the value of key that a handle refers to, as a stream.
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

// answerApart is answer for an entry with a handle. If the entry is visible and the lookup wants its value, it reads
// the value and answers with it.
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

// readApart returns a function that reads blob values of a version.
func (d *DB) readApart(v *version.Version) func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
	return func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
		h, _, err := handleOf(k.User, value, k.Kind())
		if err != nil {
			return dst, err
		}
		return d.appendApart(dst, v, k.User, h)
	}
}

// readForOperands is readApart for an iterator that combines operands with the values. It leaves a value unread under
// its operands if it is longer than an entry made of operands may be, or than a MemoryLimit allows.
func (d *DB) readForOperands(v *version.Version) func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
	read, limit := d.readApart(v), min(d.operands.limit(), d.opts.maxFolded())
	return func(dst []byte, k base.InternalKey, value []byte) ([]byte, error) {
		if h, _, err := handleOf(k.User, value, k.Kind()); err == nil && h.Size > limit {
			return dst, iterator.ErrStaysApart
		}
		return read(dst, k, value)
	}
}

// passMemory is how many bytes a compaction prefetches of all blob files from which it copies values.
const passMemory = 16 << 20

// openApart returns a function that opens blob values of a version as streams. It is for one goroutine, which goes
// through the blob files from front to back: it reads each value before it opens the next of the same file. Where
// reads are requests, the given number of files share the memory for prefetching.
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

// separation says which values go into blob files in a flush or compaction to a level.
func (d *DB) separation(v *version.Version, level int) tablemeta.Separation {
	return tablemeta.Separation{From: max(d.opts.SeparateFrom, 0), TargetSize: d.opts.compaction().NewBlobSize(v),
		Compression: d.opts.LevelCompression[level],
		ID:          func(num uint64) uint64 { return d.blobID(v, num) }}
}
