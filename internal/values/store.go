package values

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Config says what a Store works with.
type Config struct {
	FS      vfs.FS
	Dir     string
	NewNum  func() uint64 // returns a number that no file has
	Blobs   version.BlobCache
	Cleaner *version.Cleaner
	Log     *slog.Logger

	// Follows says that another process writes the store: a listed file that is missing is no damage.
	Follows bool

	// SeparateFrom is the minimum length in bytes of a value that Commits puts into the blob file of the log.
	SeparateFrom int
	// MaxLogFile is the size in bytes at which the blob file of a log is full.
	MaxLogFile int64
	// Fail breaks the logs, after the blob file of one could not be synced.
	Fail func(what string, err error) error
}

// A Store has the blob values of one store. Its methods are safe for concurrent use.
type Store struct {
	Config
	Written atomic.Uint64 // bytes of the blob files that commits wrote

	commits Commits

	// gate is held for reading while a stream works on files, and for writing by Close.
	gate   sync.RWMutex
	closed bool

	mu      sync.RWMutex
	files   map[uint64]*File // that handles may refer to, by number
	streams map[*File]bool   // that no memtable holds yet
}

// New returns a Store without files.
func New(c Config) *Store {
	s := &Store{Config: c, files: map[uint64]*File{}, streams: map[*File]bool{}}
	s.commits.s = s
	return s
}

// A File is an unlisted blob file.
type File struct {
	*version.Blob
	s *Store

	out vfs.WriteFile // nil: recovery found the file
	w   *blob.Writer  // nil: the file is finished

	handle    blob.Handle // of a stream
	committed bool        // a memtable may hold the stream

	log *logFile // not nil: it is the file of a log

	// Guarded by Store.mu.
	holders  int  // memtables, and the stream before a memtable holds it
	unneeded bool // tables have all that the memtables had, and none refers to the file
}

// create creates a blob file, that of a log or a stream.
func (s *Store) create(ofLog bool) (*File, error) {
	f := &File{s: s, Blob: &version.Blob{BlobFile: manifest.BlobFile{Num: s.NewNum()}}}
	o := blob.WriterOptions{Num: f.Num}
	var err error
	if f.out, err = s.FS.Create(s.Blobs.Path(f.Num)); err != nil {
		return nil, err
	}
	if ofLog {
		f.log = &logFile{out: vfs.NewTailFile(f.out)}
		f.out, o.ByCommit, o.Compression = f.log.out, true, compression.None
	}
	f.w = blob.NewWriter(f.out, o)
	return f, nil
}

func (f *File) finish() error {
	info, err := f.w.Finish()
	if err == nil {
		f.w, f.BlobFile = nil, listing(info)
	}
	return err
}

// sync makes the file durable, and its name.
func (f *File) sync() error {
	if err := f.out.Sync(); err != nil {
		return err
	}
	return f.s.FS.SyncDir(f.s.Dir)
}

// remove removes a file that no handle refers to.
func (f *File) remove() {
	name := f.s.Blobs.Path(f.Num)
	if err := f.s.FS.Remove(name); err != nil {
		f.s.Log.Warn("an unfinished file could not be removed", "file", name, "error", err)
	}
}

// listing returns the manifest's entry for a blob file.
func listing(i blob.Info) manifest.BlobFile {
	return manifest.BlobFile{Num: i.Num, ID: i.ID, Size: i.Size, Records: i.Records, ValueBytes: i.ValueBytes}
}

// register makes a file readable by handles in memtables, for one holder, and returns it. If one of its number is
// registered, it returns that.
func (s *Store) register(f *File) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.files[f.Num]; known != nil {
		f = known
	}
	s.files[f.Num] = f
	f.holders++
	return f
}

// Release implements memtable.Held.
func (f *File) Release() { f.release(false) }

// release releases the file for one holder; unneeded says that it must not stay.
func (f *File) release(unneeded bool) {
	s := f.s
	s.mu.Lock()
	f.holders--
	last := f.holders == 0
	if last {
		delete(s.files, f.Num)
	}
	f.unneeded = f.unneeded || unneeded
	unneeded = f.unneeded
	s.mu.Unlock()
	if last {
		s.Cleaner.Blob(f.Blob, unneeded)
	}
}

// File returns the unlisted blob file of a number; nil if there is none.
func (s *Store) File(num uint64) *File {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.files[num]
}

// Files returns all unlisted blob files that handles may refer to.
func (s *Store) Files() []*File {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.files))
}

// Close removes the files of unfinished streams, and closes those of logs. Streams find that the store is closed. No
// commit runs.
func (s *Store) Close() error {
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	for f := range s.streams {
		f.remove()
	}
	s.commits.AwaitSyncs()
	s.commits.Abandon()
	var errs []error
	for _, f := range s.Files() {
		if f.log != nil {
			errs = append(errs, f.out.Close())
		}
	}
	return errors.Join(errs...)
}

// of returns the unlisted blob files that memtables hold.
func of(mems []*memtable.Memtable) (files []*File) {
	for _, m := range mems {
		if !m.HoldsAny() {
			continue
		}
		for _, h := range m.Held() {
			if f, ok := h.(*File); ok {
				files = append(files, f)
			}
		}
	}
	return files
}

// LogBytes returns the bytes of the files of logs that memtables hold. The logs have ended.
func LogBytes(mems []*memtable.Memtable) (sum int64) {
	for _, f := range of(mems) {
		if f.log != nil {
			sum += f.Size
		}
	}
	return sum
}

// CheckListed returns an error if a replayed log has handles of a blob file of the version: the flush that lists a
// file is the end of its log.
func (s *Store) CheckListed(v *version.Version) error {
	for _, f := range s.Files() {
		if v.Blob(f.Num) != nil {
			return s.corrupt(f.Num, "a log has handles of its values, which the manifest says are in tables", nil)
		}
	}
	return nil
}

func (s *Store) corrupt(num uint64, what string, cause error) error {
	return &base.CorruptionError{File: s.Blobs.Path(num), Offset: -1, Hint: s.Blobs.Hint, What: what, Cause: cause}
}
