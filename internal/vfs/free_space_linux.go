package vfs

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

func (o osFS) FreeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	stat := func() error { return unix.Statfs(dir, &st) }
	if d, rel := o.open.in(dir); d != nil && rel == "." {
		stat = func() error { return d.with(func(fd int) error { return unix.Fstatfs(fd, &st) }) }
	}
	err := uninterrupted(stat)
	if err == nil && st.Blocks == 0 {
		err = errors.ErrUnsupported // it does not count
	}
	if err != nil {
		return 0, pathError("statfs", dir, err)
	}
	return int64(min(st.Bavail*uint64(st.Frsize), math.MaxInt64)), nil
}
