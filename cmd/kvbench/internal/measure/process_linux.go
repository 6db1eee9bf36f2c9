package measure

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
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
