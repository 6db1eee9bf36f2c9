package kv

import (
	"bytes"
	"io"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
)

// A ValueReader reads one value, as it was when the reader was made: later writes, flushes and compactions change
// nothing. Of an uncompressed blob value 256 KiB are in memory at a time, and each piece is checked before any of it
// is returned. In an object store up to 2 MiB more are in memory, from one request. Any other value is in memory as a
// whole. If the value cannot be read, the error of Read names the file and the offset.
//
// Close it: until then the files that the value needs stay on disk, whatever becomes of the key. A reader that is open
// when the store closes stays safe to use, and returns ErrClosed. It is not safe for concurrent use.
type ValueReader struct {
	db     *DB
	size   int64
	value  io.Reader
	blob   *blob.Stream // value, if it is a blob value
	taken  int64        // bytes of the file that blob has read and that are counted
	state  *readState   // that has what value reads; nil: nothing is held
	stripe int
	closed bool
}

var _ io.ReadCloser = (*ValueReader)(nil)

// GetReader returns a reader of the value of key, or ErrNotFound. It costs what Get costs, except that a blob value is
// read as the reader is. The value of a key with operands is made at once.
func (d *DB) GetReader(key []byte) (*ValueReader, error) { return d.present.reader(key) }

// GetReader is DB.GetReader as of the snapshot. The reader may outlive it.
func (s *Snapshot) GetReader(key []byte) (*ValueReader, error) { return s.view.reader(key) }

// GetReader is DB.GetReader for what the transaction reads: the store as it was when it began, and its own
// writes. The key counts as read, as by Get. The reader may outlive the transaction.
func (t *Tx) GetReader(key []byte) (*ValueReader, error) { return t.view.reader(key) }

// reader returns a reader of the value of key.
func (v *readView) reader(key []byte) (*ValueReader, error) {
	var h blob.Handle
	l := lookup{key: key, want: true, stream: &h}
	if v.tx != nil {
		if done, err := v.inTx(&l); err != nil {
			return nil, err
		} else if done {
			return v.d.readerOf(l.dst), nil
		}
	}
	s, stripe, at := v.enter(counters.OwnStripe())
	if s == nil {
		return nil, v.refused()
	}
	begun := false
	defer func() {
		if !begun {
			s.release(stripe)
		}
	}()
	pin := &Snapshot{view: readView{d: v.d}, pinned: s, stripe: stripe}
	in := readView{d: v.d, at: at, snap: pin}
	err := in.look(&l)
	switch {
	case v.ended():
		return nil, ErrClosed
	case err != nil:
		return nil, err
	case h.File == 0:
		return v.d.readerOf(l.dst), nil
	}
	stream, err := v.d.values.OpenStream(s.version, key, h)
	if err != nil {
		return nil, err
	}
	begun = true
	r := &ValueReader{db: v.d, size: h.Size, value: stream, blob: stream, state: s, stripe: stripe}
	v.d.counters.Stripes[stripe].Blobs.Reads.Add(1)
	r.count()
	v.d.handles.readers.Add(r, v.d.opts.TraceOpens, 2)
	return r, nil
}

// readerOf returns a reader of a value in memory, which it keeps.
func (d *DB) readerOf(value []byte) *ValueReader {
	r := &ValueReader{db: d, size: int64(len(value)), value: bytes.NewReader(value)}
	d.handles.readers.Add(r, d.opts.TraceOpens, 2)
	return r
}

// Size returns the length of the value in bytes.
func (r *ValueReader) Size() int64 { return r.size }

// Read implements io.Reader. After Close it returns ErrClosed.
func (r *ValueReader) Read(b []byte) (int, error) {
	if r.closed || r.db.closed.Load() {
		return 0, ErrClosed
	}
	n, err := r.value.Read(b)
	r.count()
	return n, err
}

// count counts what was read of a blob file.
func (r *ValueReader) count() {
	if r.blob == nil {
		return
	}
	if taken := r.blob.Taken(); taken > r.taken {
		r.db.counters.Stripes[r.stripe].Blobs.Bytes.Add(uint64(taken - r.taken))
		r.taken = taken
	}
}

// Close releases what the reader holds. It never fails, and a second Close does nothing.
func (r *ValueReader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.db.handles.readers.Remove(r, r.db.opts.TraceOpens)
	if r.state != nil {
		r.state.release(r.stripe)
	}
	r.value, r.blob, r.state = nil, nil, nil
	return nil
}
