package vfs

import (
	"math"

	"golang.org/x/sys/windows"
)

func (o osFS) FreeSpace(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, pathError("statfs", dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, pathError("statfs", dir, err)
	}
	return int64(min(free, math.MaxInt64)), nil
}
