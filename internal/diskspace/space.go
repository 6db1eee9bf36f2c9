// Package diskspace keeps account of the room on a store's disk.
package diskspace

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Blob GC needs room before it frees some. A store with blob files asks its disk what is free after each flush and
// compaction. It may have less garbage where its logs, flushes and blob GC would lack room: see compaction.BlobSpace.
// So it collects garbage, and slows writers down, before the disk is full.
//
// Not every disk tells, and others may take what was free. For this the store has a ballast: a file of random bytes,
// as large as a blob file. An operation that finds no room removes the ballast and is tried again. Then files are
// collected one by one, and only compactions and flushes write, until little garbage is left and there is room for the
// ballast. Else a full disk would have no room for blob GC. A store that has failed for want of space compacts between
// its attempts to resume.

// A Space is what a store knows about the room on its disk. It is safe for concurrent use.
type Space struct {
	fs  vfs.FS
	dir string
	log *slog.Logger

	free atomic.Int64 // bytes, when last asked; 0: something found no room since; math.MaxInt64: not known
	full atomic.Bool  // something found no room, and the ballast was not made since

	mu      sync.Mutex // of the file
	ballast int64      // bytes of the file; 0: there is none
}

// Init is called before any other method.
func (s *Space) Init(fsys vfs.FS, dir string, log *slog.Logger) {
	s.fs, s.dir, s.log = fsys, dir, log
	s.free.Store(math.MaxInt64)
}

// FindBallast looks for the ballast that an earlier process has left.
func (s *Space) FindBallast() { s.ballast, _ = s.fs.Stat(s.path()) }

func (s *Space) path() string { return filepath.Join(s.dir, manifest.BallastName) }

// Free returns the bytes that were free when the disk was last asked; 0 if something found no room since, and
// math.MaxInt64 if it is not known.
func (s *Space) Free() int64 { return s.free.Load() }

// Awaits reports whether less than need may be free, and there are files that will be removed.
func (s *Space) Awaits(need int64, h *version.History) bool {
	return s.Free() < need && h.Obsolete() > 0
}

// Full reports whether something found no room, and the ballast was not made since.
func (s *Space) Full() bool { return s.full.Load() }

// Known returns what the choice of compactions must know. Disk.WithObsolete counts files that are removed once readers
// no longer need them. Blob GC in place of these would copy values, take room for them, and free as little, until the
// disk is full. On a full disk they do not count: files that came after the readers are worth collecting.
func (s *Space) Known(h *version.History) compaction.Disk {
	disk := compaction.Disk{Free: s.free.Load(), Full: s.full.Load()}
	disk.WithObsolete = disk.Free
	if disk.Free < math.MaxInt64 && !disk.Full {
		disk.WithObsolete += h.Obsolete()
	}
	return disk
}

// Lack notes that something found no room: the ballast goes then. It reports whether what has failed should be tried
// again at once: it has more room, or will ask for less.
func (s *Space) Lack(cause error) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free.Store(0)
	again = !s.full.Swap(true)
	if s.ballast > 0 {
		s.ballast, again = 0, true
		s.log.Warn("the disk is full: the store uses its ballast", "dir", s.dir, "error", cause)
		if err := s.fs.Remove(s.path()); err != nil {
			s.log.Warn("the ballast could not be removed", "dir", s.dir, "error", err)
		}
	}
	return again
}

// Note takes note of the bytes that are free; math.MaxInt64: the disk does not tell.
func (s *Space) Note(free int64) {
	if free < math.MaxInt64 || !s.full.Load() {
		s.free.Store(free)
	}
}

// MakeBallast makes the ballast, unless there is one of at least half the size. On a disk that does not tell what is
// free it shows whether there is room.
func (s *Space) MakeBallast(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ballast < size/2 {
		f, err := s.fs.Create(s.path())
		if err == nil {
			_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size) // no file system stores them in fewer bytes
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			s.log.Debug("there is no room for the ballast", "dir", s.dir, "error", err)
			_ = s.fs.Remove(s.path()) // it need not be there
			s.ballast = 0
			return
		}
		s.ballast = size
	}
	s.full.Store(false)
	s.free.CompareAndSwap(0, math.MaxInt64)
}
