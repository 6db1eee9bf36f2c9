package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// maxRetainedBuffer bounds the buffer that a Writer keeps from one flush to the next, in bytes.
const maxRetainedBuffer = 1 << 20

// pieceSize is how many bytes of a record that Append has not finished are in the buffer at the most, and a block. A
// buffer that has grown to that is retained.
const pieceSize = maxRetainedBuffer / 2

var padding [minRoom]byte

// A Writer appends records to a new log.
//
// It is for one goroutine at a time, with one exception: SyncFile and Synced may run
// concurrently with all methods, themselves included.
//
// After its file has failed to write or to sync, a Writer is broken: the content of the
// file is unknown, and trying again could make a loss look like a success. All methods
// then return the first error, and the caller goes on in a new log.
type Writer struct {
	f  vfs.WriteFile
	id uint64

	buf    []byte // appended and not flushed
	size   int64  // of the log, with buf
	marked int64  // the last sync mark's offset
	ended  bool   // the end-of-log mark is written
	torn   bool   // the last write took a part of buf
	closed bool   // guarded by syncing: the file is

	flushed atomic.Int64 // bytes that the file has been given
	synced  atomic.Int64 // of these, bytes that are known to be durable
	syncing sync.Mutex   // one sync at a time: only one of two would see an error
	beside  atomic.Pointer[func() error]
	held    atomic.Bool // marks say no more than they do
	err     atomic.Pointer[error]
}

// NewWriter returns a writer of the log with an id to an empty file, and takes ownership
// of the file. Nothing is written before the first flush.
func NewWriter(f vfs.WriteFile, id uint64) *Writer {
	w := &Writer{f: f, id: id}
	w.buf = appendFileHeader(w.buf, id)
	w.size = fileHeaderSize
	return w
}

// TakeBuffer gives w the memory of an ended log's buffer, so that it need not grow one while a
// write waits. Only SyncFile may run concurrently, on either.
func (w *Writer) TakeBuffer(ended *Writer) {
	if ended.ended && len(ended.buf) == 0 && cap(ended.buf) > cap(w.buf) {
		w.buf, ended.buf = append(ended.buf, w.buf...), nil
	}
}

// Append adds a record, which may be empty, to the buffer. It copies the record. If a record is larger than pieceSize,
// it hands all except the last part to the operating system, with what was in the buffer before: a reader sees no part
// of a record before Flush. The errors are those of Flush, and base.ErrClosed after End.
func (w *Writer) Append(record []byte) error {
	if err := w.failure(); err != nil {
		return err
	}
	if w.ended {
		return fmt.Errorf("log %d has ended: %w", w.id, base.ErrClosed)
	}
	if synced := w.proven(); synced > w.marked && roomAt(w.size) > 0 {
		w.mark(typeSynced, synced)
	}
	for typ := typeFull; ; typ = typeMiddle {
		room := w.startFragment() - headerSize
		if len(record) <= room {
			if typ == typeMiddle {
				typ = typeLast
			}
			w.add(typ, record)
			return nil
		}
		if typ == typeFull {
			typ = typeFirst
		}
		w.add(typ, record[:room])
		record = record[room:]
		if len(w.buf) >= pieceSize {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

// startFragment goes on to the next block if this one has no room, and returns how much there is.
func (w *Writer) startFragment() int {
	if room := roomAt(w.size); room > 0 {
		return room
	}
	pad := nextBlock(w.size) - w.size // less than minRoom
	w.buf = append(w.buf, padding[:pad]...)
	w.size += pad
	return blockSize
}

func (w *Writer) add(typ fragmentType, payload []byte) {
	w.buf = appendFragment(w.buf, w.id, w.size, typ, payload)
	w.size += int64(headerSize + len(payload))
}

func (w *Writer) mark(typ fragmentType, synced int64) {
	var b [markSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(synced))
	w.add(typ, b[:])
	w.marked = synced
}

// HoldMarks keeps marks from saying more than they do, until it is called with false. Meanwhile a sync may end whose
// records are history only if something else does not fail: a reader in another process takes a mark for that.
func (w *Writer) HoldMarks(hold bool) { w.held.Store(hold) }

// proven returns what a mark may say.
func (w *Writer) proven() int64 {
	if w.held.Load() {
		return w.marked
	}
	return w.synced.Load()
}

// Mark adds a sync mark and flushes, if it says more than the last: a reader in another process need not wait for the
// next record. A log without records gets none.
func (w *Writer) Mark() error {
	err := w.failure()
	if synced := w.proven(); err == nil && !w.ended && synced > max(w.marked, fileHeaderSize) {
		w.startFragment()
		w.mark(typeSynced, synced)
		err = w.Flush()
	}
	return err
}

// Flush hands the buffer to the operating system in one write. What it wrote outlives the process, but not the machine.
func (w *Writer) Flush() error {
	if err := w.failure(); err != nil || len(w.buf) == 0 {
		return err
	}
	n, err := w.f.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.torn = n < len(w.buf)
		return w.fail(fmt.Errorf("write to log %d: %w", w.id, err))
	}
	w.flushed.Store(w.size)
	if cap(w.buf) > maxRetainedBuffer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return nil
}

// Sync makes every record durable that was appended: Flush, then SyncFile.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.SyncFile()
}

// SyncFile makes all records durable that a Flush had taken when SyncFile was called. Records that are buffered, or
// flushed meanwhile, are not covered. If a concurrent sync has covered them, it returns without one of its own.
func (w *Writer) SyncFile() error {
	want := w.flushed.Load()
	w.syncing.Lock()
	defer w.syncing.Unlock()
	err := w.failure()
	if err != nil && !errors.Is(err, base.ErrClosed) {
		return err
	}
	if w.synced.Load() >= want {
		return nil
	}
	if err != nil {
		return err
	}
	flushed := w.flushed.Load()
	if err := w.syncBoth(); err != nil {
		return w.fail(fmt.Errorf("sync log %d: %w", w.id, err))
	}
	w.synced.Store(flushed)
	return nil
}

// SyncBeside makes each later sync of the log run f in parallel, and end when both have: records refer to what f makes
// durable. So a sync mark proves both. After a crash a record may be there, and not what it refers to, unless a mark
// says that it had been synced.
func (w *Writer) SyncBeside(f func() error) { w.beside.Store(&f) }

func (w *Writer) syncBoth() error {
	beside := w.beside.Load()
	if beside == nil {
		return w.f.Sync()
	}
	other := make(chan error, 1)
	go func() { other <- (*beside)() }()
	return errors.Join(w.f.Sync(), <-other)
}

// Break breaks the writer as a failure of its file would: what is buffered is never
// written, nothing is synced, and all methods return err, unless an earlier failure broke
// the writer. It is for an owner that abandons the log for another reason.
func (w *Writer) Break(err error) { _ = w.fail(err) }

// End writes the end-of-log mark and flushes. No record follows it, but Sync and SyncFile still make durable what is
// there, the mark included. A second End does nothing.
func (w *Writer) End() error {
	if err := w.failure(); err != nil || w.ended {
		return err
	}
	w.startFragment()
	w.mark(typeEnd, w.proven())
	w.ended = true
	return w.Flush()
}

// Close ends the log, if End did not, and closes the file. A broken writer only closes its file, and returns the error
// that broke it. After Close, methods return base.ErrClosed.
func (w *Writer) Close() error {
	w.syncing.Lock()
	closed := w.closed
	w.syncing.Unlock()
	if closed {
		return base.ErrClosed
	}
	err := w.End()
	if cerr := w.CloseFile(); err == nil {
		err = cerr
	}
	return err
}

// CloseFile closes the file as it is: what is buffered is never written. It is Close for
// a log that is not needed, or has ended.
func (w *Writer) CloseFile() error {
	w.syncing.Lock() // no sync of a closed file
	defer w.syncing.Unlock()
	if w.closed {
		return base.ErrClosed
	}
	closed := fmt.Errorf("log %d: %w", w.id, base.ErrClosed)
	w.closed = true
	w.err.Store(&closed)
	w.buf = nil
	if err := w.f.Close(); err != nil {
		return fmt.Errorf("close log %d: %w", w.id, err)
	}
	return nil
}

// ID returns the log's id.
func (w *Writer) ID() uint64 { return w.id }

// Size returns the length of the log in bytes, with what is buffered.
func (w *Writer) Size() int64 { return w.size }

// Empty reports whether no record was appended, nor the end written, and the file was given nothing.
func (w *Writer) Empty() bool { return w.size == fileHeaderSize && w.flushed.Load() == 0 }

// Synced reports whether everything that was flushed is known to be durable. It may run concurrently with all other
// methods.
func (w *Writer) Synced() bool { return w.synced.Load() >= w.flushed.Load() }

// Torn reports whether the file has taken only a part of the last flush, which ends with a record: that record is not
// in the log.
func (w *Writer) Torn() bool { return w.torn }

// Buffered returns the bytes that are appended and not flushed.
func (w *Writer) Buffered() int { return len(w.buf) }

func (w *Writer) failure() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// fail breaks the writer, unless it is broken already, and returns the first error.
func (w *Writer) fail(err error) error {
	w.err.CompareAndSwap(nil, &err)
	return w.failure()
}
