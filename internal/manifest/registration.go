package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A reader in another process than the writer has a file READER-<process id>-<number> in
// the store's directory, and locks it as long as it lives. Its text is one line:
//
//	siftkv reader pid=4711 manifest=7 offset=1234 crc=89abcdef
//
// The reader may need every file that the store had at this position of its history, or had later. crc is as in
// CURRENT. Any other text means that the reader may need every file, as while it opens the store, and while the line is
// being written. An unlocked file was left by a process that has died.

// A Registration tells the writer of a store which files a reader may need. It is safe for concurrent use.
type Registration struct {
	fs   vfs.FS
	name string
	lock io.Closer

	mu sync.Mutex
	at Position
}

var registrations atomic.Uint64

// maxRegisterTries is more than enough: names are taken only by processes of other
// machines or containers with the same id.
const maxRegisterTries = 100

// Register registers a reader that may need every file.
func Register(fsys vfs.FS, dir string) (*Registration, error) {
	var last error
	for range maxRegisterTries {
		name := filepath.Join(dir, fmt.Sprintf("%s%d-%d", readerPrefix, os.Getpid(), registrations.Add(1)))
		lock, err := fsys.Lock(name, vfs.Exclusive)
		if err == nil {
			return &Registration{fs: fsys, name: name, lock: lock}, nil
		}
		if last = err; !errors.Is(err, vfs.ErrLocked) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("siftkv: a reader could not register: %w", last)
}

// Set says that the reader needs no file that the store gave up before at.
func (r *Registration) Set(at Position) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == at {
		return nil
	}
	line := fmt.Sprintf("siftkv reader pid=%d manifest=%d offset=%d", os.Getpid(), at.Manifest, at.Offset)
	f, err := r.fs.Create(r.name)
	if err != nil {
		return err
	}
	_, err = f.Write(base.SealLine(line))
	if err = errors.Join(err, f.Close()); err == nil {
		r.at = at
	}
	return err
}

// Close ends the registration.
func (r *Registration) Close() error {
	// In this order no other reader can have the name meanwhile. If an open file cannot
	// be removed, the next writer does it.
	err := r.fs.Remove(r.name)
	if closeErr := r.lock.Close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return nil
}

// Readers returns how many readers there are, and the oldest position that one of
// them needs. It removes the registrations of processes that have died.
func Readers(fsys vfs.FS, dir string) (n int, oldest Position, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, Position{}, err
	}
	for _, file := range names {
		if kind, _ := ParseFileName(file); kind != FileReader {
			continue
		}
		name := filepath.Join(dir, file)
		// This lock needs no permission to write: a reader may be another user's.
		lock, err := fsys.Lock(name, vfs.Existing)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has ended since
			continue
		case err == nil:
			removeErr := fsys.Remove(name) // while it is locked: Register locks no file that has lost its name
			if err := lock.Close(); err != nil {
				return 0, Position{}, err
			}
			if removeErr != nil {
				_ = fsys.Remove(name) // in case an open file cannot be removed
			}
			continue
		}
		// A lock that cannot be taken, for any reason, may be a reader's.
		at := needs(fsys, name)
		if n == 0 || at.Before(oldest) {
			oldest = at
		}
		n++
	}
	return n, oldest, nil
}

// needs returns the position that a registration names; if it names none, that before all others.
func needs(fsys vfs.FS, name string) Position {
	data, err := vfs.ReadSmallFile(fsys, name, maxCurrentSize)
	if err != nil {
		return Position{}
	}
	line, ok := base.UnsealLine(string(data))
	if !ok {
		return Position{}
	}
	var pid, manifest, offset uint64
	if !base.ScanLine(line, "siftkv reader pid=%d manifest=%d offset=%d", &pid, &manifest, &offset) {
		return Position{}
	}
	return Position{manifest, int64(offset)}
}
