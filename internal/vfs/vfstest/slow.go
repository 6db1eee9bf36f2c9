package vfstest

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// ErrSlowRead is the error of reads while SlowReadFS.Failing is set.
var ErrSlowRead = errors.New("the device failed")

// A SlowReadFS counts the reads of tables, or of blob files, and makes each of them take a while, as a
// device does.
type SlowReadFS struct {
	vfs.FS
	Blobs    bool
	Delay    atomic.Int64 // nanoseconds
	Reads    atomic.Int64
	flying   atomic.Int64
	MaxReads atomic.Int64 // Reads at a time
	Warm     atomic.Int64 // number of reads that take no time
	Failing  atomic.Bool  // Reads fail, after the delay
}

// Open implements vfs.FS.
func (s *SlowReadFS) Open(name string) (vfs.ReadFile, error) {
	f, err := s.FS.Open(name)
	slow := manifest.FileTable
	if s.Blobs {
		slow = manifest.FileBlob
	}
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); err != nil || kind != slow {
		return f, err
	}
	return slowReadFile{Mapped{f}, s}, nil
}

// Reset forgets what was counted.
func (s *SlowReadFS) Reset() {
	s.Reads.Store(0)
	s.MaxReads.Store(0)
}

// Begin counts a read, which lasts until End, and returns how many there were.
func (s *SlowReadFS) Begin() int64 {
	flying := s.flying.Add(1)
	for most := s.MaxReads.Load(); flying > most && !s.MaxReads.CompareAndSwap(most, flying); {
		most = s.MaxReads.Load()
	}
	return s.Reads.Add(1)
}

// End counts a read that has ended.
func (s *SlowReadFS) End() { s.flying.Add(-1) }

type slowReadFile struct {
	Mapped
	fs *SlowReadFS
}

func (f slowReadFile) ReadAt(p []byte, off int64) (int, error) {
	reads := f.fs.Begin()
	defer f.fs.End()
	if d := time.Duration(f.fs.Delay.Load()); d > 0 && reads > f.fs.Warm.Load() {
		time.Sleep(d)
	}
	if f.fs.Failing.Load() {
		return 0, ErrSlowRead
	}
	return f.ReadFile.ReadAt(p, off)
}

// A Mapped is a file to embed: what embeds it can be mapped if the file can.
type Mapped struct{ vfs.ReadFile }

// Map implements vfs.Mapper, if the file does.
func (f Mapped) Map(size int64) (data []byte, unmap func() error, err error) {
	if m, ok := f.ReadFile.(vfs.Mapper); ok {
		return m.Map(size)
	}
	return nil, nil, errors.ErrUnsupported
}
