package storetest

import (
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/vfs"
)

// An OpenFS counts the files that are open.
type OpenFS struct {
	vfs.FS
	Opened *atomic.Int64 // how many are
}

// Create implements vfs.FS.
func (o OpenFS) Create(name string) (vfs.WriteFile, error) {
	f, err := o.FS.Create(name)
	if err == nil {
		o.Opened.Add(1)
		f = openWriteFile{f, o.Opened}
	}
	return f, err
}

// Open implements vfs.FS.
func (o OpenFS) Open(name string) (vfs.ReadFile, error) {
	f, err := o.FS.Open(name)
	if err == nil {
		o.Opened.Add(1)
		f = openReadFile{f, o.Opened}
	}
	return f, err
}

type openWriteFile struct {
	vfs.WriteFile
	open *atomic.Int64
}

func (f openWriteFile) Close() error { f.open.Add(-1); return f.WriteFile.Close() }

type openReadFile struct {
	vfs.ReadFile
	open *atomic.Int64
}

func (f openReadFile) Close() error { f.open.Add(-1); return f.ReadFile.Close() }
