package compare

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/siftkv/siftkv/internal/bench/engine"
)

// cpuTime returns what the process has used so far, in user and kernel mode.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// procField returns the number after a name in a file of /proc/self, 0 if it is not
// there.
func procField(file, name string) int64 {
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

// resident returns the bytes of memory that the process has, those of them that no
// file backs, and the most it has had.
func resident() (total, anonymous, peak int64) {
	return procField("status", "VmRSS") << 10, procField("status", "RssAnon") << 10, procField("status", "VmHWM") << 10
}

// written returns the bytes that the process has given to the kernel to write: by
// system calls, or by dirtying pages of mapped files, whichever is more.
func written() int64 {
	return max(procField("io", "wchar"), procField("io", "write_bytes")-procField("io", "cancelled_write_bytes"))
}

// readFromDevice returns the bytes that the process has had read from devices.
func readFromDevice() engine.Count {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		return engine.Unknown
	}
	return engine.Count(procField("io", "read_bytes"))
}

// requestsOf returns how many reads the device of a directory has done, for whoever it
// was; Unknown if the directory is not on one device.
func requestsOf(dir string) engine.Count {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return engine.Unknown
	}
	data, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return engine.Unknown
	}
	fields := strings.Fields(string(data))
	if len(fields) == 0 {
		return engine.Unknown
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return engine.Unknown
	}
	return engine.Count(n)
}

// room returns the bytes that are free for files in a directory, false if that cannot be
// told.
func room(dir string) (int64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * st.Bsize, true
}

// allocated returns the bytes of disk that a file takes: holes do not count.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
