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

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// procSelf returns the numbers of a file of /proc/self by their names, none if it cannot be read.
func procSelf(file string) map[string]int64 {
	data, _ := os.ReadFile("/proc/self/" + file)
	numbers := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err == nil {
			numbers[name] = n
		}
	}
	return numbers
}

// Written returns the bytes that the process has given to the kernel to write: by
// system calls, or by dirtying pages of mapped files, whichever is more.
func Written() int64 {
	io := procSelf("io")
	return max(io["wchar"], io["write_bytes"]-io["cancelled_write_bytes"])
}

// Resident returns the bytes of memory that the process has, those of them that no
// file backs, and the most it has had.
func Resident() (total, anonymous, peak int64) {
	status := procSelf("status")
	return status["VmRSS"] << 10, status["RssAnon"] << 10, status["VmHWM"] << 10
}

// DeviceReadsOf returns what was read so far from the device of a directory.
func DeviceReadsOf(dir string) DeviceReads {
	r := DeviceReads{engine.Unknown, requestsOf(dir)}
	if bytes, ok := procSelf("io")["read_bytes"]; ok {
		r.Bytes = engine.Count(bytes)
	}
	return r
}

// requestsOf returns how many reads the device of a directory has done for all programs; Unknown if the directory is
// not on one device.
func requestsOf(dir string) engine.Count {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return engine.Unknown
	}
	data, _ := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev)))
	number, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return engine.Unknown
	}
	return engine.Count(n)
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
