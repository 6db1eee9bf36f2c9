package vfs

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
)

// A TailFile is a WriteFile that keeps its tail in memory: the bytes that no Sync has made durable. Its readers find
// them there when the file does not have them any more.
//
// A system that cannot write pages to the disk may drop them, and says so to the next Sync alone: what was written is
// then in no file. As after any error, the file must be abandoned, but nothing that was written to it is lost.
type TailFile struct {
	out     WriteFile
	written atomic.Int64 // bytes that Write was given and has kept
	tail    tail

	syncing sync.Mutex // guards what follows
	synced  int64      // what written was when that became durable
	failure error
	closed  bool
}

// NewTailFile returns a TailFile that writes to out, which is empty.
func NewTailFile(out WriteFile) *TailFile { return &TailFile{out: out} }

func (f *TailFile) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	f.tail.append(p[:n])
	f.written.Add(int64(n))
	return n, err
}

// Unsynced returns how many bytes are in memory.
func (f *TailFile) Unsynced() int64 {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	return f.tail.end - f.tail.start
}

// Sync makes durable what was written before the call. Several callers share a sync. After an error, and after Close,
// every Sync that has something to make durable fails: one that succeeds would prove nothing.
func (f *TailFile) Sync() error {
	want := f.written.Load()
	f.syncing.Lock()
	defer f.syncing.Unlock()
	switch {
	case f.synced >= want:
		return nil // whatever became of the file since
	case f.failure != nil:
		return f.failure
	}
	written := f.written.Load()
	if err := f.out.Sync(); err != nil {
		f.failure = err
		return err
	}
	f.synced = written
	f.tail.drop(written)
	return nil
}

// Close closes the file for writing. Its readers go on. A second Close does nothing.
func (f *TailFile) Close() error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.failure = errors.Join(f.failure, fs.ErrClosed)
	return f.out.Close()
}

// Reader returns a reader of the same file as r that is a Rereader, and a NowReader if r is one. Closing it closes r.
func (f *TailFile) Reader(r ReadFile) ReadFile {
	now, _ := r.(NowReader)
	return &tailReader{ReadFile: r, now: now, tail: &f.tail}
}

type tailReader struct {
	ReadFile
	now  NowReader // nil: it is none
	tail *tail
}

var (
	_ NowReader = (*tailReader)(nil)
	_ Rereader  = (*tailReader)(nil)
)

// ReadAt implements ReadFile: what the file cannot give may be in memory.
func (r *tailReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReadFile.ReadAt(p, off)
	if err == nil || !r.tail.overlay(p, off, n) {
		return n, err
	}
	return len(p), nil
}

func (r *tailReader) ReadNow(p []byte, off int64) NowRead {
	if r.now == nil {
		return NowUnable
	}
	return r.now.ReadNow(p, off)
}

// ReadAgain implements Rereader: it prefers what is in memory.
func (r *tailReader) ReadAgain(p []byte, off int64) (int, error) {
	n, err := r.ReadFile.ReadAt(p, off)
	if r.tail.overlay(p, off, n) {
		return len(p), nil
	}
	return n, err
}

// tailChunk is the length of the parts in which a tail is kept. They are used again.
const tailChunk = 256 << 10

// A tail is the last bytes of a file, in chunks of tailChunk of which the first begins at base.
type tail struct {
	mu     sync.Mutex
	base   int64
	start  int64 // of the bytes that are kept; within the first chunk
	end    int64
	chunks [][]byte
	spare  []byte // a chunk; nil: none
}

// append adds what the file has at its end.
func (t *tail) append(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(p) > 0 {
		at := int(t.end-t.base) / tailChunk
		if at == len(t.chunks) {
			if t.spare == nil {
				t.spare = make([]byte, tailChunk)
			}
			t.chunks, t.spare = append(t.chunks, t.spare), nil
		}
		n := copy(t.chunks[at][int(t.end-t.base)%tailChunk:], p)
		t.end += int64(n)
		p = p[n:]
	}
}

func (t *tail) drop(to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start = to
	for len(t.chunks) > 0 && t.base+tailChunk <= to {
		t.spare = t.chunks[0]
		t.chunks[0] = nil
		t.chunks = t.chunks[1:]
		t.base += tailChunk
	}
}

// overlay puts what the tail has of the bytes at off into p, of which the first n are there already. It reports
// whether all of p is.
func (t *tail) overlay(p []byte, off int64, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := max(off, t.start)
	if to := off + int64(len(p)); from >= to || to > t.end || from-off > int64(n) {
		return false
	}
	for p = p[from-off:]; len(p) > 0; {
		at := int(from - t.base)
		m := copy(p, t.chunks[at/tailChunk][at%tailChunk:])
		p, from = p[m:], from+int64(m)
	}
	return true
}
