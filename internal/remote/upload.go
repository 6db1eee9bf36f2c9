package remote

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// Create returns a file for writing. It sends no request: Sync uploads the file, whole or not at all, in one request
// (more for files that are so large that the store's client sends them in parts). A file that is closed without Sync
// never appears in the store.
//
// What is written is in memory until the file is closed. A flush or compaction writes one table and one blob file at a
// time, of bounded sizes, so this is little compared with what a compaction reads. A temporary file would need a local
// disk, which the machine may lack, and add a second way to fail. Large files that are there already are uploaded by
// Put, without memory.
func (t *Tables) Create(name string) (vfs.WriteFile, error) { return t.create(name, true) }

// CreateBlob is Create for a blob file. Opening one does not read its end, so that is not kept in memory.
func (t *Tables) CreateBlob(name string) (vfs.WriteFile, error) { return t.create(name, false) }

func (t *Tables) create(name string, keepsEnd bool) (vfs.WriteFile, error) {
	if err := objstore.CheckKey(name); err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	return &upload{t: t, name: name, keepsEnd: keepsEnd}, nil
}

// Put uploads a file of the first size bytes of r, which is read from several goroutines. It is one request, or more
// as for Create.
func (t *Tables) Put(name string, r io.ReaderAt, size int64) error {
	timeout := max(t.o.ReadTimeout, time.Minute) + onSlowestLine(size)
	return t.retry(t.ctx, timeout, func(ctx context.Context) error { return t.store.Put(ctx, name, r, size) })
}

// onSlowestLine returns how long size bytes take over the slowest line that is of use, 64 KiB/s. It is for stores that
// hang: clients notice sooner when nothing moves.
func onSlowestLine(size int64) time.Duration { return time.Duration(size>>10) * time.Second / 64 }

var (
	errUploaded = errors.New("the file was uploaded by Sync, and cannot be added to")
	errGivenUp  = errors.New("an upload failed, and the file must be given up")
)

type upload struct {
	t        *Tables
	name     string
	data     chunks
	keepsEnd bool // in memory, for the file's opening
	uploaded bool
	failed   bool
	closed   bool
}

func (u *upload) Write(p []byte) (int, error) {
	if err := u.check(); err != nil {
		return 0, &fs.PathError{Op: "write", Path: u.name, Err: err}
	}
	u.data.write(p)
	return len(p), nil
}

func (u *upload) check() error {
	switch {
	case u.closed:
		return fs.ErrClosed
	case u.failed:
		return errGivenUp
	case u.uploaded:
		return errUploaded
	}
	return nil
}

// Sync implements vfs.WriteFile, for the whole file: nothing can be written after it. Unlike that of other files, it
// must not run concurrently with Write. A second Sync sends nothing.
func (u *upload) Sync() error {
	err := u.check()
	if errors.Is(err, errUploaded) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "sync", Path: u.name, Err: err}
	}
	size := u.data.size
	if err := u.t.Put(u.name, &u.data, size); err != nil {
		u.failed = true
		return err
	}
	u.uploaded = true
	if u.t.o.WriteThrough {
		u.t.o.Cache.Add(u.t.o.CacheName+u.name, &u.data, size)
	}
	if n := min(size, mostFreshEnd, u.t.o.KeepBytes); n > 0 && u.keepsEnd {
		end := make([]byte, n)
		_, _ = u.data.ReadAt(end, size-n) // it is all there
		u.t.fresh.add(u.name, size-n, end)
	}
	return nil
}

// Close implements vfs.WriteFile. It releases the memory.
func (u *upload) Close() error {
	if u.closed {
		return &fs.PathError{Op: "close", Path: u.name, Err: fs.ErrClosed}
	}
	u.closed = true
	u.data.release()
	return nil
}
