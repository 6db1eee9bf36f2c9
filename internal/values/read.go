package values

import (
	"errors"
	"io/fs"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/version"
)

// HandleOf returns the handle of an entry with a blob value, and its expiry if it has one.
func HandleOf(key, value []byte, kind base.Kind) (h blob.Handle, expiry uint64, err error) {
	if h, expiry, err = blob.HandleOf(kind, value); err != nil {
		err = &base.CorruptionError{Offset: -1, What: "an entry of key " +
			base.InternalKey{User: key, Trailer: base.MakeTrailer(0, kind)}.String(), Cause: err}
	}
	return h, expiry, err
}

// Reader returns the reader of a blob file that entries of memtables or of a version's tables refer to.
func (s *Store) Reader(v *version.Version, num uint64) (*blob.Reader, error) {
	if b := v.Blob(num); b != nil {
		r, err := b.Open(&s.Blobs)
		if !s.Follows && errors.Is(err, fs.ErrNotExist) {
			err = s.corrupt(num, "a blob file", err)
		}
		return r, err
	}
	f := s.File(num)
	if f == nil {
		return nil, s.corrupt(num, "a handle leads to a blob file that the store does not have", nil)
	}
	return f.Open(&s.Blobs)
}

// ID returns the id of a blob file that entries of memtables or of a version's tables refer to; 0 if there is none of
// that number.
func (s *Store) ID(v *version.Version, num uint64) uint64 {
	if id := v.BlobID(num); id != 0 {
		return id
	}
	if f := s.File(num); f != nil {
		return f.ID
	}
	return 0
}

// Append appends to dst the value of key that a handle refers to, without the cache.
func (s *Store) Append(dst []byte, v *version.Version, key []byte, h blob.Handle) ([]byte, error) {
	r, err := s.Reader(v, h.File)
	if err != nil {
		return dst, err
	}
	return r.AppendValue(dst, key, h)
}

// AppendCached is Append for a lookup, which may find the value in the cache, and puts it there. It counts in c, unless
// that is nil.
func (s *Store) AppendCached(dst []byte, v *version.Version, key []byte, h blob.Handle, c *counters.Blobs) ([]byte,
	error) {
	r, err := s.Reader(v, h.File)
	if err != nil {
		return dst, err
	}
	out, hit, err := r.AppendCached(dst, key, h)
	switch {
	case err != nil || c == nil:
	case hit:
		c.CacheHits.Add(1)
	default:
		c.Count(h)
	}
	return out, err
}

// streamPrefetch is how many bytes a stream of a value prefetches where reads are requests.
const streamPrefetch = 2 << 20

// OpenStream returns the value of key that a handle refers to, as a stream.
func (s *Store) OpenStream(v *version.Version, key []byte, h blob.Handle) (*blob.Stream, error) {
	r, err := s.Reader(v, h.File)
	if err != nil {
		return nil, err
	}
	return r.OpenAhead(key, h, streamPrefetch)
}

// passMemory is how many bytes a compaction prefetches of all blob files from which it copies values.
const passMemory = 16 << 20

// OpenPass returns a function that opens blob values of a version as streams. It is for one goroutine, which goes
// through the blob files from front to back: it reads each value before it opens the next of the same file. Where
// reads are requests, the given number of files share the memory for prefetching.
func (s *Store) OpenPass(v *version.Version, files int) func(key []byte, h blob.Handle) (*blob.Stream, error) {
	passes := map[uint64]*blob.Reader{}
	return func(key []byte, h blob.Handle) (*blob.Stream, error) {
		r := passes[h.File]
		if r == nil {
			file, err := s.Reader(v, h.File)
			if err != nil {
				return nil, err
			}
			r = file.Pass(passMemory / max(files, 1))
			passes[h.File] = r
		}
		return r.OpenStream(key, h)
	}
}
