package vfs

import "io"

// FS is a file system. Names are paths of the platform (package path/filepath). All methods are safe for concurrent
// use. Errors name the path and match fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and fs.ErrClosed where these apply.
type FS interface {
	// Create makes an empty file for writing. A file that is there already is truncated, with all its hard links.
	Create(name string) (WriteFile, error)

	// Open opens a file for reading at random.
	Open(name string) (ReadFile, error)

	// Remove removes a file or an empty directory. Files that are open stay
	// readable; on Windows, removing them may fail instead.
	Remove(name string) error

	// Rename gives a file or directory a new name, in one step. A file that
	// bears the new name is replaced; a directory that does is an error.
	Rename(oldname, newname string) error

	// Link gives a file a second name; oldname may be a symbolic link to it. It fails where the file system has no hard
	// links, or between two file systems: the caller copies instead. The new name must be free.
	Link(oldname, newname string) error

	// List returns the base names of everything in dir, sorted.
	List(dir string) ([]string, error)

	// MkdirAll makes dir and the parents it needs. A directory that is there is no error.
	MkdirAll(dir string) error

	// SyncDir makes the names in dir durable: those that were created, linked or renamed are there after a power cut,
	// those removed are gone. It does nothing on platforms that cannot sync a directory (Windows, Plan 9).
	SyncDir(dir string) error

	// Stat returns a file's size in bytes. For a directory, the size means nothing.
	Stat(name string) (size int64, err error)

	// Lock takes the lock on a file, which it creates if need be, and holds it until the result is closed or the
	// process ends. It never waits: if another holder, in this process or another, stands in the way, the error is a
	// *LockedError. The file stays behind, unlocked; a holder may remove it.
	//
	// A Shared lock needs no permission to write. If the file is missing and the directory is read-only, there is no
	// holder to exclude, and the result holds nothing.
	Lock(name string, mode LockMode) (io.Closer, error)
}

// A FileSyncer is a file system that can make durable what other handles have written.
type FileSyncer interface {
	// SyncFile makes a file's bytes durable, through any handle, but not its name.
	SyncFile(name string) error
}

// WriteFile is a file that is written from front to back. Write is for one goroutine at a
// time; Sync may run concurrently with it.
type WriteFile interface {
	io.Writer

	// Sync makes durable what the calls of Write that returned before it wrote, but not the file's name (see
	// FS.SyncDir). After an error, it is unknown which of these bytes are durable, and a second Sync that succeeds does
	// not tell: the file must be abandoned.
	Sync() error

	// Close closes the file without syncing it.
	Close() error
}

// ReadFile is a file that is read at random. It is safe for concurrent use.
type ReadFile interface {
	io.ReaderAt

	// Size returns the file's length in bytes, as of now.
	Size() (int64, error)

	// Close closes the file. Reads that are under way end first.
	Close() error
}

// A Mapper is a ReadFile that can be read as memory.
type Mapper interface {
	// Map returns the first size bytes of the file, which must have them, as read-only memory, and a function that
	// releases it. The bytes are those on disk, while the file does not change. If it was truncated, or the device
	// fails, a read of the memory is a fault of the processor: see debug.SetPanicOnFault. The file may be closed or
	// removed before the memory is released. Map fails if the platform does not support it.
	Map(size int64) (data []byte, unmap func() error, err error)
}

// A PartReader is a ReadFile of which a read costs the same however long it is, up to a part: each is a request to
// another machine.
type PartReader interface {
	// PartSize returns how many bytes a pass over the file should read at a time, with the part after it, or
	// several, under way meanwhile. 0: as of any other file.
	PartSize() int
}

// A Rereader is a ReadFile; its bytes may have been damaged on their way, or in a cache.
type Rereader interface {
	// ReadAgain is ReadAt past all caches, for bytes that ReadAt gave and that turned out to be damaged. What
	// caches have of them is dropped.
	ReadAgain(p []byte, off int64) (int, error)
}

// A NowReader is a ReadFile that can read what is in memory without a wait.
type NowReader interface {
	// ReadNow reads len(p) bytes at off if that needs no wait for a device. Unless it returns
	// NowDone, what p holds is undefined: ReadAt reads them, or says what is wrong.
	ReadNow(p []byte, off int64) NowRead
}

// A NowRead is what came of reading without a wait.
type NowRead uint8

// NowBegun says that the system has begun to read. A caller that wants several pieces
// should request all of them before it waits for one.
const (
	NowUnable NowRead = iota // whether a read waits cannot be told, and none has begun
	NowBegun
	NowDone
)
