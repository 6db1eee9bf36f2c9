//go:build !linux

package vfs

import "os"

// osReadFile is a file of the operating system.
type osReadFile struct{ f *os.File }

func newReadFile(f *os.File) ReadFile { return &osReadFile{f} }

func (r *osReadFile) Close() error { return r.f.Close() }
