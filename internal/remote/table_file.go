package remote

import (
	"context"
	"io"
	"io/fs"
	"sync"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Open returns a file for reading; size must be that of the file. It sends no request: only a read finds that the file
// is missing. A read is one request, or none if the cache has the bytes. The end of a file that was just written is in
// memory until it was read once, as opening a table does.
func (t *Tables) Open(name string, size int64) vfs.ReadFile { return t.open(name, size, false, nil) }

// open is Open, also of a blob file, of which the cache keeps long reads too, if they are shorter than a part. Reads of
// the file end with a span.
func (t *Tables) open(name string, size int64, blob bool, within *span) vfs.ReadFile {
	f := &tableFile{t: t, name: name, size: size, blob: blob, within: within}
	f.ctx, f.cancel = context.WithCancel(t.ctx)
	return f
}

type tableFile struct {
	t      *Tables
	name   string
	size   int64
	blob   bool
	ctx    context.Context
	cancel context.CancelFunc
	within *span // in which it was opened; nil: none

	mu     sync.RWMutex // held for reading by each read
	closed bool
}

// ReadAt implements vfs.ReadFile. It requests no byte after the file's end. An error that matches io.EOF means that the
// object is shorter than the size, or the read goes beyond it.
func (f *tableFile) ReadAt(p []byte, off int64) (int, error) { return f.read(p, off, f.t.readAt) }

// ReadAgain implements vfs.Rereader. It is one request.
func (f *tableFile) ReadAgain(p []byte, off int64) (int, error) {
	return f.read(p, off, func(ctx context.Context, f *tableFile, p []byte, off int64) (int, error) {
		f.t.o.Cache.Forget(f.t.o.CacheName+f.name, off, int64(len(p)))
		return f.t.fetch(ctx, f.name, p, off)
	})
}

// read is ReadAt by a function that is called for bytes that are in the file.
func (f *tableFile) read(p []byte, off int64,
	readAt func(ctx context.Context, f *tableFile, p []byte, off int64) (int, error)) (int, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	switch {
	case f.closed:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrClosed}
	case off < 0:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	case len(p) == 0:
		return 0, nil
	}
	n := int(max(min(int64(len(p)), f.size-off), 0))
	if n > 0 {
		ctx, cancel := f.within.bound(f.ctx)
		m, err := readAt(ctx, f, p[:n], off)
		cancel()
		if m < n {
			return m, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size implements vfs.ReadFile. It sends no request.
func (f *tableFile) Size() (int64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return 0, &fs.PathError{Op: "size", Path: f.name, Err: fs.ErrClosed}
	}
	return f.size, nil
}

func (f *tableFile) PartSize() int { return f.t.o.PartSize }

// Close implements vfs.ReadFile. It makes the reads end that are under way, and waits for that.
func (f *tableFile) Close() error {
	f.cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}

// readAt fills p, all of which is in the file. The error is not nil if and only if it has not.
func (t *Tables) readAt(ctx context.Context, f *tableFile, p []byte, off int64) (int, error) {
	if t.fresh.readAt(f.name, p, off) {
		return len(p), nil
	}
	get := func(p []byte, off int64) (int, error) { return t.fetch(ctx, f.name, p, off) }
	if f.blob {
		return t.o.Cache.ReadValueAt(ctx, t.o.CacheName+f.name, f.size, t.o.PartSize, p, off, get)
	}
	return t.o.Cache.ReadAt(ctx, t.o.CacheName+f.name, f.size, p, off, get)
}

// fetch is readAt from the store.
func (t *Tables) fetch(ctx context.Context, name string, p []byte, off int64) (n int, err error) {
	err = t.retry(ctx, t.o.ReadTimeout, func(ctx context.Context) (err error) {
		select {
		case t.places <- struct{}{}:
			defer func() { <-t.places }()
		case <-ctx.Done():
			return ctx.Err()
		}
		n, err = t.store.GetRange(ctx, name, off, p)
		return err
	})
	return n, asPathError(err)
}
