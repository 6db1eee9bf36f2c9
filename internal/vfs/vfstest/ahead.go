package vfstest

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An AheadFS is a SlowReadFS that begins to read without a wait, as Linux does. Only what has
// to be waited for is counted as a read.
type AheadFS struct {
	*SlowReadFS
	mu    sync.Mutex
	Asked int
	Deaf  bool                // it says that it begins, and does not
	ready map[place]time.Time // what was asked for, and when it is in memory
}

type place struct {
	name   string
	offset int64
}

// NewAheadFS returns an AheadFS that has nothing in memory. The caller sets its SlowReadFS before the first call.
func NewAheadFS() *AheadFS { return &AheadFS{ready: map[place]time.Time{}} }

// Forget makes the system forget what it has in memory.
func (a *AheadFS) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Asked = 0
	clear(a.ready)
}

// Open implements vfs.FS.
func (a *AheadFS) Open(name string) (vfs.ReadFile, error) {
	f, err := a.FS.Open(name)
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); err != nil || kind != manifest.FileTable {
		return f, err
	}
	return aheadFile{slowReadFile{f, a.SlowReadFS}, name, a}, nil
}

type aheadFile struct {
	slowReadFile
	name string
	a    *AheadFS
}

// ask returns when the bytes at off are in memory, and begins to read them.
func (f aheadFile) ask(off int64) time.Time {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	at, ok := f.a.ready[place{f.name, off}]
	if !ok {
		at = time.Now()
		if f.a.Asked++; f.a.Asked > int(f.fs.Warm.Load()) {
			at = at.Add(time.Duration(f.fs.Delay.Load()))
		}
		f.a.ready[place{f.name, off}] = at
	}
	return at
}

// ReadNow implements vfs.NowReader.
func (f aheadFile) ReadNow(p []byte, off int64) vfs.NowRead {
	if f.a.Deaf && f.fs.Delay.Load() > 0 || time.Until(f.ask(off)) > 0 {
		return vfs.NowBegun
	}
	if _, err := f.ReadFile.ReadAt(p, off); err != nil {
		return vfs.NowUnable
	}
	return vfs.NowDone
}

func (f aheadFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.begin()
	defer f.fs.flying.Add(-1)
	time.Sleep(time.Until(f.ask(off)))
	return f.ReadFile.ReadAt(p, off)
}
