package remote

import (
	"fmt"
	"io/fs"

	"github.com/siftkv/siftkv/internal/remote/filelist"
)

// A logFile is a log file that is written. It implements vfs.WriteFile.
type logFile struct {
	l      *Logs
	number uint64

	// Under the lock of l:
	size   uint64
	end    int64 // of the last byte in all that was written
	closed bool
	err    error
}

// check returns why the file cannot be used. The lock is held.
func (f *logFile) check(op string) error {
	err := f.err
	if f.closed {
		err = fs.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("siftkv: %s log %d: %w", op, f.number, err)
	}
	return nil
}

// Write buffers a copy of p. It waits while too much is buffered.
func (f *logFile) Write(p []byte) (int, error) {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for f.err == nil && !f.closed && l.buffered >= stopWriting*l.opts.MaxBuffered {
		l.step()
	}
	if err := f.check("write"); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	last := len(l.buffer) - 1
	if last < 0 || l.buffer[last].Log != f.number {
		l.buffer = append(l.buffer, filelist.Chunk{Log: f.number, Offset: f.size})
		last++
	}
	l.buffer[last].Data = append(l.buffer[last].Data, p...)
	l.buffered += len(p)
	l.written += int64(len(p))
	f.size += uint64(len(p))
	f.end = l.written
	l.schedule()
	return len(p), nil
}

// Sync waits until all that was written to the file is put, and with it what was written to any file before.
func (f *logFile) Sync() error {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for want := f.end; f.err == nil && !f.closed && l.durable < want; {
		l.step()
	}
	return f.check("sync")
}

// Close leaves what is not put yet to the next put.
func (f *logFile) Close() error {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.closed {
		return f.check("close")
	}
	f.closed = true
	delete(l.files, f)
	return nil
}
