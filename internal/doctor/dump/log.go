package dump

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// An End says how a log ends.
type End struct {
	Records int
	Bytes   int64 // of the file
	Skipped int64 // bytes that were given up
	Closed  bool  // the end-of-log mark is there
	Faults  []error
}

// logID returns the number of a log: its name's, or its header's if the file has
// another name.
func logID(name string, f vfs.ReadFile) uint64 {
	if kind, num := manifest.ParseFileName(filepath.Base(name)); kind == manifest.FileWAL ||
		kind == manifest.FileManifest {
		return num
	}
	var header [24]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(header[16:])
}

// records calls f with every record of a log that checks out, and goes on behind
// damage. An error of f that matches base.ErrCorruption is a fault like others; one of
// the file system is none.
func records(path string, f func(offset int64, record []byte) error) (e *End, err error) {
	file, err := vfs.OS.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	e = &End{}
	if e.Bytes, err = file.Size(); err != nil {
		return nil, err
	}
	r := wal.NewReader(file, path, logID(path, file))
	for {
		record, err := r.Next()
		if err == nil {
			e.Records++
			if err = f(r.Offset(), record); errors.Is(err, base.ErrCorruption) {
				e.Faults = append(e.Faults, err)
			} else if err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			e.Closed, e.Skipped = r.Clean(), r.Skipped()
			return e, nil
		}
		if !wal.Broken(err) {
			return nil, err
		}
		e.Faults = append(e.Faults, err)
		if r.Skip() {
			continue
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			return nil, err // what is behind cannot be read
		}
		e.Skipped = r.Skipped()
		return e, nil
	}
}

// WAL calls f with every write of a log; offset is where its record begins.
func WAL(path string, f func(offset int64, e Entry) error) (*End, error) {
	return records(path, func(offset int64, record []byte) error {
		for written, err := range batchrepr.All(record) {
			var e Entry
			if err == nil {
				e, err = entryOf(written.Key, written.Value)
			}
			if err != nil {
				return damaged(path, offset, "a record of the log", err)
			}
			if err := f(offset, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// Manifest calls f with every version edit of a manifest.
func Manifest(path string, f func(offset int64, e *manifest.Edit) error) (*End, error) {
	return records(path, func(offset int64, record []byte) error {
		e, err := manifest.DecodeEdit(record)
		if errors.Is(err, manifest.ErrNewerFormat) {
			return err
		}
		if err != nil {
			return damaged(path, offset, "a version edit", err)
		}
		return f(offset, e)
	})
}

func damaged(path string, offset int64, what string, cause error) error {
	if cause == nil {
		return nil
	}
	return &base.CorruptionError{File: path, Offset: offset, What: what, Cause: cause}
}
