package kv

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

var errSlowRead = errors.New("the device failed")

// A slowReadFS counts the reads of tables, or of blob files, and makes each of them take a while, as a
// device does.
type slowReadFS struct {
	vfs.FS
	blobs   bool
	delay   atomic.Int64 // nanoseconds
	reads   atomic.Int64
	flying  atomic.Int64
	most    atomic.Int64 // reads at a time
	warm    atomic.Int64 // so many reads take no time
	failing atomic.Bool  // reads fail, after the delay
}

func (s *slowReadFS) Open(name string) (vfs.ReadFile, error) {
	f, err := s.FS.Open(name)
	slow := manifest.FileTable
	if s.blobs {
		slow = manifest.FileBlob
	}
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); err != nil || kind != slow {
		return f, err
	}
	return slowReadFile{f, s}, nil
}

// reset forgets what was counted.
func (s *slowReadFS) reset() {
	s.reads.Store(0)
	s.most.Store(0)
}

// begin counts a read that has begun, and flies until flying is taken down, and returns how many there were.
func (s *slowReadFS) begin() int64 {
	flying := s.flying.Add(1)
	for most := s.most.Load(); flying > most && !s.most.CompareAndSwap(most, flying); {
		most = s.most.Load()
	}
	return s.reads.Add(1)
}

type slowReadFile struct {
	vfs.ReadFile
	fs *slowReadFS
}

func (f slowReadFile) ReadAt(p []byte, off int64) (int, error) {
	reads := f.fs.begin()
	defer f.fs.flying.Add(-1)
	if d := time.Duration(f.fs.delay.Load()); d > 0 && reads > f.fs.warm.Load() {
		time.Sleep(d)
	}
	if f.fs.failing.Load() {
		return 0, errSlowRead
	}
	return f.ReadFile.ReadAt(p, off)
}

// Map implements vfs.Mapper, if the file does.
func (f slowReadFile) Map(size int64) (data []byte, unmap func() error, err error) {
	if m, ok := f.ReadFile.(vfs.Mapper); ok {
		return m.Map(size)
	}
	return nil, nil, errors.ErrUnsupported
}
