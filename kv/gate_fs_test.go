package kv

import (
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A gateFS calls a function before it creates a table.
type gateFS struct {
	vfs.FS
	table func()
}

func (g *gateFS) Create(name string) (vfs.WriteFile, error) {
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); kind == manifest.FileTable {
		g.table()
	}
	return g.FS.Create(name)
}

// SyncFile lets Ingest link files instead of creating them.
func (g *gateFS) SyncFile(name string) error { return g.FS.(vfs.FileSyncer).SyncFile(name) }

// A yieldingFS lets other goroutines go first at every call that would reach a disk, as
// a disk does. On one processor a store in memory would otherwise run each call from
// beginning to end, and nothing would ever come in between.
type yieldingFS struct{ vfs.FS }

func (y yieldingFS) Create(name string) (vfs.WriteFile, error) {
	runtime.Gosched()
	f, err := y.FS.Create(name)
	return yieldingWriteFile{f}, err
}

func (y yieldingFS) Open(name string) (vfs.ReadFile, error) {
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

// An unwritableFS is one in a directory where nobody may create files.
type unwritableFS struct{ vfs.FS }

func (unwritableFS) Create(name string) (vfs.WriteFile, error) {
	return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrPermission}
}

func (unwritableFS) Lock(name string, _ vfs.LockMode) (io.Closer, error) {
	return nil, &fs.PathError{Op: "lock", Path: name, Err: fs.ErrPermission}
}

// goroutines returns how many goroutines stores have started that run still.
func goroutines() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "\ncreated by github.com/siftkv/siftkv/kv.(*")
}

// leakCheck returns a function that returns when no goroutine of a store is left that
// was not there before; who leaks one waits for ever. Tests that run in parallel to
// others cannot ask.
func leakCheck() (noneLeft func()) {
	before := goroutines()
	return func() { until(func() bool { return goroutines() <= before }) }
}
