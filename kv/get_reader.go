package kv

import (
	"bytes"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
)

// A ValueReader reads one value, as it was when the reader was made: later writes, flushes and compactions change
// nothing. Of an uncompressed blob value 256 KiB are in memory at a time, and each piece is checked before any of it
// is returned. In an object store up to 2 MiB more are in memory, from one request. Any other value is in memory as a
// whole. If the value cannot be read, the error of Read names the file and the offset.
//
// Close it: until then the files that the value needs stay on disk, whatever becomes of the key. A
// reader that is open when the store closes stays safe to use, and returns ErrClosed. It is not safe for
// concurrent use.
type ValueReader struct {
	db     *DB
	size   int64
	value  io.Reader
	apart  *blob.Stream // value, if it is a blob value
	taken  int64        // bytes of the file that apart has read and that are counted
	state  *readState   // that has what value reads; nil: nothing is held
	stripe int
	closed bool
}

var _ io.ReadCloser = (*ValueReader)(nil)

// GetReader returns a reader of the value of key, or ErrNotFound. It costs what Get costs, except that a blob value is
// read as the reader is. The value of a key with operands is made at once.
func (d *DB) GetReader(key []byte) (*ValueReader, error) {
	n := counters.OwnStripe()
	s, now := d.acquireNow(n)
	if s == nil {
		return nil, d.unreadable()
	}
	return d.readerIn(s, n, key, now)
}

// GetReader is DB.GetReader as of the snapshot. The reader may outlive it.
func (s *Snapshot) GetReader(key []byte) (*ValueReader, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if s.pinned != nil {
		if !s.join() {
			return nil, ErrClosed
		}
		return s.db.readerIn(s.pinned, s.stripe, key, s.seq)
	}
	n := counters.OwnStripe()
	state := s.db.acquire(n)
	if state == nil {
		return nil, s.db.unreadable()
	}
	r, err := s.db.readerIn(state, n, key, s.seq)
	if s.closed.Load() { // meanwhile, as in get
		if r != nil {
			_ = r.Close() // it never fails
		}
		return nil, ErrClosed
	}
	return r, err
}

// GetReader is DB.GetReader for what the transaction reads: the store as it was when it began, and its own
// writes. The key counts as read, as by Get. The reader may outlive the transaction.
func (t *Tx) GetReader(key []byte) (*ValueReader, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	own, err := t.writes.memory()
	if err != nil {
		return nil, err
	}
	if own != nil {
		l := lookup{d: t.db, key: key, want: true}
		if l.inOwnWrites(own) || l.chain.begun { // operands of its own may need the store's value, which Get reads
			value, err := t.Get(key)
			if err != nil {
				return nil, err
			}
			return t.db.readerOf(value), nil
		}
	}
	if t.writable {
		if err := t.reads.addKey(key); err != nil {
			return nil, err
		}
	}
	if t.pinned != nil {
		return t.pinned.GetReader(key)
	}
	n := counters.OwnStripe()
	s := t.db.acquire(n)
	if s == nil {
		return nil, t.db.unreadable()
	}
	return t.db.readerIn(s, n, key, t.seq)
}

// readerIn returns a reader of the value of key as of a write, in a state that the caller has acquired. The state is
// the reader's from now on.
func (d *DB) readerIn(s *readState, stripe int, key []byte, at base.SeqNum) (*ValueReader, error) {
	keeps := false
	defer func() {
		if !keeps {
			d.release(s, stripe)
		}
	}()
	var h blob.Handle
	l := lookup{key: key, at: at, want: true, stream: &h}
	ok, err := d.lookIn(s, stripe, &l)
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil || h.File == 0 {
		var value []byte
		if err == nil {
			value = l.appendValue(nil)
		}
		if err != nil {
			return nil, err
		}
		return d.readerOf(value), nil
	}
	stream, err := d.values.OpenStream(s.version, key, h)
	if err != nil {
		return nil, err
	}
	keeps = true
	r := &ValueReader{db: d, size: h.Size, value: stream, apart: stream, state: s, stripe: stripe}
	d.counters.Stripes[stripe].Blobs.Reads.Add(1)
	r.count()
	d.openReaders.Add(r, d.opts.TraceOpens, 2)
	return r, nil
}

// readerOf returns a reader of a value in memory, which it keeps.
func (d *DB) readerOf(value []byte) *ValueReader {
	r := &ValueReader{db: d, size: int64(len(value)), value: bytes.NewReader(value)}
	d.openReaders.Add(r, d.opts.TraceOpens, 2)
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
	if r.apart == nil {
		return
	}
	if taken := r.apart.Taken(); taken > r.taken {
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
	r.db.openReaders.Remove(r, r.db.opts.TraceOpens)
	if r.state != nil {
		r.db.release(r.state, r.stripe)
	}
	r.value, r.apart, r.state = nil, nil, nil
	return nil
}
