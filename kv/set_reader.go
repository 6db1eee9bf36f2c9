package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// MaxReaderSize is the largest value that SetReader takes, in bytes.
const MaxReaderSize = blob.MaxValue

// leastStreamed is the minimum length in bytes of a value that is not held in memory: that of a piece, of which one is
// in memory anyway.
const leastStreamed = 256 << 10

// SetReader stores under key the next size bytes of r, up to MaxReaderSize. It reads no further in r. The value is not
// held in memory. It goes into a blob file of its own as it is read, which is synced, whatever o says. Then a handle
// of it is committed as any other write is. No reader sees any of the value before it is there as a whole, and other
// writers do not wait while r is read. A value of less than 256 KiB is read into memory, and is then as one of Set.
//
// If r ends too early or fails, or anything else comes between, nothing is written, and the error matches that of r:
// io.ErrUnexpectedEOF if it ended. A full disk is an error of this call alone, as long as the value is read. A
// concurrent write of the same key may come before or after, as with Set. The goroutine of the caller reads r. If r
// blocks for good, SetReader does not return, but Close does; after that SetReader returns ErrClosed once r does. In
// an object store the value is as one of Set: SetReader takes values up to MaxValueSize there, and holds them in
// memory.
//
// SetReader checks ctx between two reads of r, and then does what Batch.CommitContext does. An error that matches
// ctx.Err() always means that nothing was written.
func (d *DB) SetReader(ctx context.Context, key []byte, size int64, r io.Reader, o *WriteOptions) error {
	if err := errors.Join(d.writable(), checkKey(key), d.checkStreamed(size)); err != nil {
		return err
	}
	if r == nil {
		return errNilReader
	}
	src := &streamSource{ctx: ctx, d: d, r: r}
	if size < d.leastStreamed() || d.opts.Objects != nil {
		value := make([]byte, size)
		if n, err := io.ReadFull(src, value); err != nil {
			return src.failed(key, int64(n), size, err)
		}
		b := d.NewBatch()
		_ = b.Set(key, value) // CommitContext says so too
		return b.CommitContext(ctx, o)
	}
	s, err := d.beginStream()
	if err != nil {
		return err
	}
	defer s.end()
	if err := s.read(key, size, src); err != nil {
		return err
	}
	return s.commit(ctx, key, o)
}

// checkStreamed returns an error for a value that is too long for SetReader.
func (d *DB) checkStreamed(size int64) error {
	most := int64(MaxReaderSize)
	if d.opts.Objects != nil {
		most = MaxValueSize
	}
	switch {
	case size < 0:
		return fmt.Errorf("siftkv: a value of %d bytes", size)
	case size > most:
		return fmt.Errorf("%w: a value has %d bytes, the limit is %d", ErrTooLarge, size, most)
	}
	return nil
}

func (d *DB) leastStreamed() int64 {
	if d.opts.leastStreamed > 0 {
		return d.opts.leastStreamed
	}
	return leastStreamed
}

// A streamSource is the reader of a value. It fails when the store takes no writes, or ctx has ended.
type streamSource struct {
	ctx  context.Context
	d    *DB
	r    io.Reader
	read int64
}

func (s *streamSource) Read(b []byte) (int, error) {
	if err := s.d.writable(); err != nil {
		return 0, err
	}
	if s.ctx.Err() != nil {
		return 0, base.ContextError(s.ctx, "a value was read")
	}
	n, err := s.r.Read(b)
	if n < 0 || n > len(b) {
		return 0, fmt.Errorf("siftkv: the reader returned %d for a Read of %d bytes", n, len(b))
	}
	s.read += int64(n)
	return n, err
}

// failed describes why a value could not be read.
func (s *streamSource) failed(key []byte, n, size int64, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("siftkv: the value of key %q, of which %d bytes of %d were read: %w", key, n, size, err)
}

// A valueStream is a value that is on its way into a blob file.
type valueStream struct {
	d      *DB
	num    uint64
	file   vfs.WriteFile
	handle blob.Handle
	held   *heldBlob // the file, for the handle's memtable to hold; nil: it is not finished
	stays  bool      // a log may have the handle
}

// valueStreams are those of a store. They do nothing with files during the end of Close.
type valueStreams struct {
	mu     sync.Mutex
	idle   sync.Cond
	busy   int // streams that are at work on files
	open   map[*valueStream]bool
	closed bool
}

// enter reports whether a stream may work on files until leave. Otherwise the store is closed, and has removed them.
func (l *valueStreams) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.busy++
	}
	return !l.closed
}

func (l *valueStreams) leave() {
	l.mu.Lock()
	l.busy--
	l.mu.Unlock()
	l.idle.Broadcast()
}

// close waits for streams that are at work on files, and returns the others, which find that the store is closed.
func (l *valueStreams) close() (open []*valueStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for l.busy > 0 {
		l.idle.Wait()
	}
	for s := range l.open {
		open = append(open, s)
	}
	return open
}

// keep notes, or no longer does, that a stream has a file.
func (l *valueStreams) keep(s *valueStream, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*valueStream]bool{}
	}
	if delete(l.open, s); open {
		l.open[s] = true
	}
}

// closeStreams removes the files of values that are still being read: the store closes.
func (d *DB) closeStreams() {
	for _, s := range d.streams.close() {
		s.remove()
	}
}

// beginStream creates a blob file.
func (d *DB) beginStream() (*valueStream, error) {
	if !d.streams.enter() {
		return nil, ErrClosed
	}
	defer d.streams.leave()
	s := &valueStream{d: d, num: d.newFileNum()}
	var err error
	if s.file, err = d.fs.Create(d.blobPath(s.num)); err != nil {
		return nil, err
	}
	d.streams.keep(s, true)
	return s, nil
}

// read reads the value into the file.
func (s *valueStream) read(key []byte, size int64, src *streamSource) error {
	// The write gets its number when it is committed, and the record has to have one before. Any larger than
	// those of all writes that came before the call will do: others are concurrent with it.
	seq := s.d.seq() + 1
	w := blob.NewWriter(s.file, blob.WriterOptions{Num: s.num})
	defer w.Abandon()
	h, err := w.AddFrom(key, seq, 0, size, src)
	if err != nil {
		return src.failed(key, src.read, size, err)
	}
	info, err := w.Finish()
	if err != nil {
		return err
	}
	s.handle = h
	if !s.d.streams.enter() {
		return ErrClosed
	}
	defer s.d.streams.leave()
	if err = s.file.Sync(); err == nil {
		err = s.d.fs.SyncDir(s.d.dir)
	}
	if err != nil {
		return err
	}
	s.held = s.d.holdBlob(manifest.BlobFile{Num: info.Num, ID: info.ID, Size: info.Size, Records: info.Records,
		ValueBytes: info.ValueBytes})
	return nil
}

// commit commits the handle of the value.
func (s *valueStream) commit(ctx context.Context, key []byte, o *WriteOptions) error {
	if !s.d.streams.enter() {
		return ErrClosed
	}
	defer s.d.streams.leave()
	b := s.d.NewBatch()
	value := s.handle.Append(nil)
	b.repr.Arena = memtable.EntrySize(len(key), len(value))
	b.repr.Add(base.KindSetApart, key, value)
	b.repr.Held = []commit.Held{{Held: s.held, Bytes: s.held.Size}}
	defer func() { // also if a function of the application ends the goroutine: the log may have the handle
		if s.stays = len(b.repr.Held) == 0; s.stays {
			s.d.streams.keep(s, false) // before Close may look
			s.d.counters.blobCommitted.Add(uint64(s.held.Size))
			s.d.commits.Bytes.Add(uint64(s.handle.Size)) // of the batch there was the handle
		}
	}()
	return b.CommitContext(ctx, o)
}

// end closes the file. Unless a memtable holds it, it is removed.
func (s *valueStream) end() {
	_ = s.file.Close() // what stays was synced
	if !s.d.streams.enter() {
		return
	}
	defer s.d.streams.leave()
	s.d.streams.keep(s, false)
	switch {
	case s.stays:
	case s.held != nil:
		s.d.held.mu.Lock()
		s.held.unneeded = true
		s.d.held.mu.Unlock()
		s.held.Release()
	default:
		s.remove()
	}
}

// remove removes the file.
func (s *valueStream) remove() {
	name := s.d.blobPath(s.num)
	if err := s.d.fs.Remove(name); err != nil {
		s.d.log.Warn("an unfinished file could not be removed", "file", name, "error", err)
	}
}
