package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ProcSelf returns the number after a name in a file of /proc/self, 0 if it is not
// there.
func ProcSelf(file, name string) int64 {
	data, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// Written returns the bytes that the process has given to the kernel to write: by
// system calls, or by dirtying pages of mapped files, whichever is more.
func Written() int64 {
	return max(ProcSelf("io", "wchar"), ProcSelf("io", "write_bytes")-ProcSelf("io", "cancelled_write_bytes"))
}

// allocated returns the bytes of disk that a file takes: holes do not count.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// DropCaches syncs every file under dir and asks the kernel to forget their pages
// (posix_fadvise), then counts the pages that stayed (cachestat, Linux 6.5).
func DropCaches(dir string) (PageCache, error) {
	if inMemory(dir) {
		why := dir + " is in memory: its file system has nothing but the page cache"
		return PageCache{Left: -1, Impossible: why}, nil
	}
	state := PageCache{Dropped: true}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		left, err := dropFile(path)
		if left < 0 || state.Left < 0 {
			state.Left = -1
		} else {
			state.Left += left
		}
		return err
	})
	return state, err
}

// ChillCaches asks the kernel to write the files under dir back and to forget what it has
// written, and waits for neither: a store that is being written keeps no more in the page
// cache than came since the call before. Files may come and go meanwhile.
func ChillCaches(dir string) error {
	if inMemory(dir) {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop %s from the page cache: %w", path, err)
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		return errors.Join(err, f.Close())
	})
}

// inMemory reports whether a directory has nothing but the page cache.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	kind := int64(st.Type) //nolint:unconvert // the type has another width on other processors
	return kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC
}

// dropFile returns the bytes of a file that are still cached, -1 if it cannot be told.
func dropFile(path string) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // an obsolete file that is gone by now
	}
	if err != nil {
		return -1, fmt.Errorf("drop %s from the page cache: %w", path, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := f.Sync(); err != nil { // dirty pages would stay
		return -1, fmt.Errorf("drop %s from the page cache: %w", path, err)
	}
	fd := int(f.Fd())
	if err := unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		return -1, fmt.Errorf("drop %s from the page cache: %w", path, err)
	}
	var stat unix.Cachestat_t
	if err := unix.Cachestat(uint(fd), &unix.CachestatRange{}, &stat, 0); err != nil {
		return -1, nil // an older kernel cannot tell, and that is all
	}
	return int64(stat.Cache) * int64(os.Getpagesize()), nil
}
