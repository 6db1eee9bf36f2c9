package kv

import (
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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

// An unwritableFS is one in a directory where nobody may create files.
type unwritableFS struct{ vfs.FS }

func (unwritableFS) Create(name string) (vfs.WriteFile, error) {
	return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrPermission}
}

func (unwritableFS) Lock(name string, _ vfs.LockMode) (io.Closer, error) {
	return nil, &fs.PathError{Op: "lock", Path: name, Err: fs.ErrPermission}
}

// requireNoGoroutines returns when no goroutine of a store is left. Who leaks one
// waits for ever. Tests that run in parallel to others cannot ask.
func requireNoGoroutines(t *testing.T) {
	t.Helper()
	until(func() bool {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		return !strings.Contains(stacks, "kv.(*DB)") && !strings.Contains(stacks, "kv.(*cleaner)") && !strings.Contains(stacks, "kv.(*commitPipeline)")
	})
}
