// Package nextlog makes the logs of a store, the next one ahead of time.
package nextlog

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A rotation needs a log whose name is durable, and a memtable whose memory is cleared: milliseconds in which no writer
// goes on. So a goroutine prepares them when the active memtable is nearly full, and a writer that finds it full only
// takes them.
//
// It is the next log then, whatever comes of it: a follower goes on in the log with the next number.

// A Source makes logs. It is safe for concurrent use.
type Source struct {
	FS     vfs.FS
	Dir    string
	Logger *slog.Logger
	NewNum func() uint64
	Check  func() error // whether a log may be made in Dir
	// Memtable returns a memtable to go with a log, or nil if there may be no other. It is called without locks.
	Memtable func(log uint64) *memtable.Memtable

	asked   atomic.Bool // Prepare was called since the last Take
	mu      sync.Mutex
	pending chan Next // gets what is being prepared; nil: nothing is
	stopped bool
}

// A Next is what a rotation goes on with.
type Next struct {
	Log *wal.Writer        // nil: it was not made
	Mem *memtable.Memtable // nil: there may have been no other
}

// Create creates the log with this number. When it returns, its name is durable.
func (s *Source) Create(num uint64) (*wal.Writer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	f, err := s.FS.Create(manifest.Path(s.Dir, manifest.FileWAL, num))
	if err != nil {
		return nil, err
	}
	l := wal.NewWriter(f, num)
	if err := s.FS.SyncDir(s.Dir); err != nil {
		s.Discard(l)
		return nil, err
	}
	return l, nil
}

// Discard closes and removes a log without writes. If it stays, it is an empty log that recovery passes over.
func (s *Source) Discard(l *wal.Writer) {
	err := l.CloseFile()
	if err = errors.Join(err, s.FS.Remove(manifest.Path(s.Dir, manifest.FileWAL, l.ID()))); err != nil {
		s.Logger.Warn("an unused log could not be removed", "log", l.ID(), "error", err)
	}
}

// Asked reports whether Prepare was called since the last Take.
func (s *Source) Asked() bool { return s.asked.Load() }

// Prepare starts to make the next log and memtable, once for each Take. If it cannot, the rotation makes its own, or
// fails as well.
func (s *Source) Prepare() {
	s.asked.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil && !s.stopped {
		s.pending = make(chan Next, 1)
		go s.prepare(s.pending)
	}
}

func (s *Source) prepare(to chan<- Next) {
	log, err := s.Create(s.NewNum())
	if err != nil {
		s.Logger.Debug("no log was made ahead", "error", err)
		to <- Next{}
		return
	}
	to <- Next{log, s.Memtable(log.ID())}
}

// Wait returns when nothing is being prepared. If last is set, nothing ever is again.
func (s *Source) Wait(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = s.stopped || last
	if s.pending != nil {
		s.pending <- <-s.pending
	}
}

// Take returns what was prepared, or is being prepared. The caller holds no lock that Memtable takes.
func (s *Source) Take() (next Next) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		next = <-s.pending
	}
	s.pending = nil
	s.asked.Store(false)
	return next
}

// Drop drops what was prepared.
func (s *Source) Drop() {
	next := s.Take()
	next.Mem.Drop()
	if next.Log != nil {
		s.Discard(next.Log)
	}
}
