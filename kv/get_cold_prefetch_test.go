package kv

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A prefetchFS is a vfstest.SlowReadFS that begins to read without a wait, as Linux does. Only what has
// to be waited for is counted as a read.
type prefetchFS struct {
	*vfstest.SlowReadFS
	mu    sync.Mutex
	Asked int
	Deaf  bool                         // it says that it begins, and does not
	ready map[prefetchOffset]time.Time // what was asked for, and when it is in memory
}

type prefetchOffset struct {
	name   string
	offset int64
}

// newPrefetchFS returns a prefetchFS that has nothing in memory. The caller sets its SlowReadFS before the first call.
func newPrefetchFS() *prefetchFS { return &prefetchFS{ready: map[prefetchOffset]time.Time{}} }

// Forget makes the system forget what it has in memory.
func (a *prefetchFS) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Asked = 0
	clear(a.ready)
}

// Open implements vfs.FS.
func (a *prefetchFS) Open(name string) (vfs.ReadFile, error) {
	f, err := a.FS.Open(name)
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); err != nil || kind != manifest.FileTable {
		return f, err
	}
	return prefetchFile{vfstest.Mapped{ReadFile: f}, name, a}, nil
}

type prefetchFile struct {
	vfstest.Mapped
	name string
	a    *prefetchFS
}

// ask returns when the bytes at off are in memory, and begins to read them.
func (f prefetchFile) ask(off int64) time.Time {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	at, ok := f.a.ready[prefetchOffset{f.name, off}]
	if !ok {
		at = time.Now()
		if f.a.Asked++; f.a.Asked > int(f.a.Warm.Load()) {
			at = at.Add(time.Duration(f.a.Delay.Load()))
		}
		f.a.ready[prefetchOffset{f.name, off}] = at
	}
	return at
}

// ReadNow implements vfs.NowReader.
func (f prefetchFile) ReadNow(p []byte, off int64) vfs.NowRead {
	if f.a.Deaf && f.a.Delay.Load() > 0 || time.Until(f.ask(off)) > 0 {
		return vfs.NowBegun
	}
	if _, err := f.ReadFile.ReadAt(p, off); err != nil {
		return vfs.NowUnable
	}
	return vfs.NowDone
}

func (f prefetchFile) ReadAt(p []byte, off int64) (int, error) {
	f.a.Begin()
	defer f.a.End()
	time.Sleep(time.Until(f.ask(off)))
	return f.ReadFile.ReadAt(p, off)
}
