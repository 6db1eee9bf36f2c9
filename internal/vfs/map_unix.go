//go:build unix

package vfs

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

func (r *osReadFile) Map(size int64) (data []byte, unmap func() error, err error) {
	if size <= 0 || math.MaxInt == math.MaxInt32 {
		return nil, nil, errors.ErrUnsupported // 32 bits of addresses are too few to map files
	}
	c, err := r.f.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var mapErr error
	err = c.Control(func(fd uintptr) {
		data, mapErr = unix.Mmap(int(fd), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	})
	if err = errors.Join(err, mapErr); err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: r.f.Name(), Err: err}
	}
	// Lookups read blocks in no order: what the system would prefetch is wasted. This is
	// advice; that it fails means nothing.
	_ = unix.Madvise(data, unix.MADV_RANDOM)
	return data, func() error { return unix.Munmap(data) }, nil
}
