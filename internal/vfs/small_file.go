package vfs

import (
	"bytes"
	"errors"
	"io"
)

// ReadSmallFile returns the first most bytes of a file, or all that there are.
func ReadSmallFile(fsys FS, name string, most int64) (data []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data = make([]byte, min(size, most))
	n, err := f.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// FileOf returns a file that has these bytes, which it aliases.
func FileOf(data []byte) ReadFile { return memoryFile{bytes.NewReader(data)} }

type memoryFile struct{ *bytes.Reader }

func (f memoryFile) Size() (int64, error) { return f.Reader.Size(), nil }
func (memoryFile) Close() error           { return nil }
