package vfs

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// osReadFile is a file of the operating system. It is a NowReader.
type osReadFile struct {
	f     *os.File
	fd    uintptr
	never atomic.Bool // the file system cannot read without a wait

	mu     sync.RWMutex // held for reading while the descriptor is used
	closed bool
}

func newReadFile(f *os.File) ReadFile { return &osReadFile{f: f, fd: f.Fd()} }

// Close closes the file when no ReadNow uses it.
func (r *osReadFile) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.f.Close()
}

// untold is how many bytes are read without a word to the scheduler. Until such a call returns, the
// collector cannot stop the world.
const untold = 64 << 10

// ReadNow implements NowReader by preadv2 with RWF_NOWAIT. As it does not wait, the scheduler is not told of the call:
// of a Get that reads a block, telling it would be a twentieth. It is told of calls that copy much: while 64 MiB were
// read again and again, the collector took 20 ms to stop the world, and 0.1 ms if it was told. The system starts to
// read bytes that are not in memory.
func (r *osReadFile) ReadNow(p []byte, off int64) NowRead {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(p) == 0 || off < 0 || r.closed || r.never.Load() {
		return NowUnable
	}
	iov := unix.Iovec{Base: unsafe.SliceData(p)}
	iov.SetLen(len(p))
	var n uintptr
	var errno syscall.Errno
	low, high := uintptr(off), uintptr(uint64(off)>>32) // two halves; where a register holds the offset, one
	if len(p) > untold {
		n, _, errno = syscall.Syscall6(unix.SYS_PREADV2, r.fd, uintptr(unsafe.Pointer(&iov)), 1, low, high,
			unix.RWF_NOWAIT)
	} else {
		n, _, errno = syscall.RawSyscall6(unix.SYS_PREADV2, r.fd, uintptr(unsafe.Pointer(&iov)), 1, low, high,
			unix.RWF_NOWAIT)
	}
	switch {
	case errno == 0 && n == uintptr(len(p)):
		return NowDone
	case errno == 0 || errno == syscall.EAGAIN:
		return NowBegun // or the file ends there
	case errno == syscall.EOPNOTSUPP || errno == syscall.ENOSYS || errno == syscall.EINVAL || errno == syscall.EPERM:
		r.never.Store(true)
	}
	return NowUnable
}
