package stress

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// A localDisk is the local disk of a process: a disk of its own, and a directory for the store's cache.
type localDisk struct {
	vfs.FS
	cache string
}

// place returns where a file is.
func (d localDisk) place(name string) (vfs.FS, string) {
	if in, ok := strings.CutPrefix(filepath.ToSlash(name), storeDir); ok && (in == "" || in[0] == '/') {
		return vfs.OS, filepath.Join(d.cache, in)
	}
	return d.FS, name
}

func (d localDisk) Create(name string) (vfs.WriteFile, error) {
	fsys, name := d.place(name)
	return fsys.Create(name)
}

func (d localDisk) Open(name string) (vfs.ReadFile, error) {
	fsys, name := d.place(name)
	return fsys.Open(name)
}

func (d localDisk) Remove(name string) error {
	fsys, name := d.place(name)
	return fsys.Remove(name)
}

func (d localDisk) List(name string) ([]string, error) {
	fsys, name := d.place(name)
	return fsys.List(name)
}

func (d localDisk) MkdirAll(name string) error {
	fsys, name := d.place(name)
	return fsys.MkdirAll(name)
}

func (d localDisk) Stat(name string) (int64, error) {
	fsys, name := d.place(name)
	return fsys.Stat(name)
}

func (d localDisk) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	fsys, name := d.place(name)
	return fsys.Lock(name, mode)
}

// A flight knows the calls of an object store that are under way, but for listings, in which others are made.
type flight struct {
	objstore.Store
	calls sync.RWMutex // held for reading by each
}

// settle waits for the calls that are under way: what was decided of them before has happened when it returns.
func (f *flight) settle() {
	f.calls.Lock()
	defer f.calls.Unlock()
}

func (f *flight) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	f.calls.RLock()
	defer f.calls.RUnlock()
	return f.Store.GetRange(ctx, key, off, p)
}

func (f *flight) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	f.calls.RLock()
	defer f.calls.RUnlock()
	return f.Store.Put(ctx, key, r, size)
}

func (f *flight) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	f.calls.RLock()
	defer f.calls.RUnlock()
	return f.Store.PutIfAbsent(ctx, key, body)
}

func (f *flight) Delete(ctx context.Context, key string) error {
	f.calls.RLock()
	defer f.calls.RUnlock()
	return f.Store.Delete(ctx, key)
}
