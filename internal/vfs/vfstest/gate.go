package vfstest

import (
	"path/filepath"
	"runtime"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A GateFS calls a function before it creates a table.
type GateFS struct {
	vfs.FS
	Table func()
}

// Create implements vfs.FS.
func (g *GateFS) Create(name string) (vfs.WriteFile, error) {
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); kind == manifest.FileTable {
		g.Table()
	}
	return g.FS.Create(name)
}

// SyncFile lets Ingest link files instead of creating them.
func (g *GateFS) SyncFile(name string) error { return g.FS.(vfs.FileSyncer).SyncFile(name) }

// A YieldingFS lets other goroutines go first at every call that would reach a disk, as
// a disk does. On one processor a store in memory would otherwise run each call from
// beginning to end, and nothing would ever come in between.
type YieldingFS struct{ vfs.FS }

// Create implements vfs.FS.
func (y YieldingFS) Create(name string) (vfs.WriteFile, error) {
	runtime.Gosched()
	f, err := y.FS.Create(name)
	return yieldingWriteFile{f}, err
}

// Open implements vfs.FS.
func (y YieldingFS) Open(name string) (vfs.ReadFile, error) {
	runtime.Gosched()
	f, err := y.FS.Open(name)
	return yieldingReadFile{f}, err
}

type yieldingWriteFile struct{ vfs.WriteFile }

func (w yieldingWriteFile) Write(p []byte) (int, error) {
	runtime.Gosched()
	return w.WriteFile.Write(p)
}

func (w yieldingWriteFile) Sync() error {
	runtime.Gosched()
	return w.WriteFile.Sync()
}

type yieldingReadFile struct{ vfs.ReadFile }

func (r yieldingReadFile) ReadAt(p []byte, off int64) (int, error) {
	runtime.Gosched()
	return r.ReadFile.ReadAt(p, off)
}
