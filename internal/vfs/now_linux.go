package vfs

import (
	"errors"
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
	conn  syscall.RawConn // of f: it lends the descriptor, and keeps it open meanwhile
	never *atomic.Bool    // the file system cannot read without a wait
}

func newReadFile(f *os.File) (ReadFile, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osReadFile{f: f, conn: conn, never: new(atomic.Bool)}, nil
}

// untold is how many bytes are read without a word to the scheduler. Until such a call returns, the
// collector cannot stop the world.
const untold = 64 << 10

// ReadNow implements NowReader by preadv2 with RWF_NOWAIT. As it does not wait, the scheduler is not told of the call:
// of a Get that reads a block, telling it would be a twentieth. It is told of calls that copy much: while 64 MiB were
// read again and again, the collector took 20 ms to stop the world, and 0.1 ms if it was told. The system starts to
// read bytes that are not in memory.
func (r osReadFile) ReadNow(p []byte, off int64) NowRead {
	if len(p) == 0 || off < 0 || r.never.Load() {
		return NowUnable
	}
	c := nowCalls.Get().(*nowCall)
	c.iov.Base, c.off = unsafe.SliceData(p), off
	c.iov.SetLen(len(p))
	call := c.call
	if len(p) > untold {
		call = c.longCall
	}
	err := r.conn.Control(call)
	done := NowUnable
	switch {
	case err != nil:
	case c.errno == 0 && c.n == uintptr(len(p)):
		done = NowDone
	case c.errno == 0 || c.errno == syscall.EAGAIN:
		done = NowBegun // or the file ends there
	case c.errno == syscall.EOPNOTSUPP || c.errno == syscall.ENOSYS || c.errno == syscall.EINVAL ||
		c.errno == syscall.EPERM:
		r.never.Store(true)
	}
	c.iov.Base = nil
	nowCalls.Put(c)
	return done
}

// A nowCall is a system call and its result. The functions are made once, as to make a closure
// for each call would allocate.
type nowCall struct {
	iov      unix.Iovec
	off      int64
	n        uintptr
	errno    syscall.Errno
	call     func(fd uintptr)
	longCall func(fd uintptr) // the scheduler is told of it
}

const offsetHalf = 32 // the offset comes in two halves; where a register holds it, in one

var nowCalls = sync.Pool{New: func() any {
	c := new(nowCall)
	c.call = func(fd uintptr) {
		c.n, _, c.errno = syscall.RawSyscall6(unix.SYS_PREADV2, fd, uintptr(unsafe.Pointer(&c.iov)), 1,
			uintptr(c.off), uintptr(uint64(c.off)>>offsetHalf), unix.RWF_NOWAIT)
	}
	c.longCall = func(fd uintptr) {
		c.n, _, c.errno = syscall.Syscall6(unix.SYS_PREADV2, fd, uintptr(unsafe.Pointer(&c.iov)), 1,
			uintptr(c.off), uintptr(uint64(c.off)>>offsetHalf), unix.RWF_NOWAIT)
	}
	return c
}}
