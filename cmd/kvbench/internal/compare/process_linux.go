package compare

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// cpuTime returns what the process has used so far, in user and kernel mode.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident returns the bytes of memory that the process has, those of them that no
// file backs, and the most it has had.
func resident() (total, anonymous, peak int64) {
	of := func(name string) int64 { return measure.ProcSelf("status", name) << 10 }
	return of("VmRSS"), of("RssAnon"), of("VmHWM")
}

// readFromDevice returns the bytes that the process has had read from devices.
func readFromDevice() engine.Count {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		return engine.Unknown
	}
	return engine.Count(measure.ProcSelf("io", "read_bytes"))
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
