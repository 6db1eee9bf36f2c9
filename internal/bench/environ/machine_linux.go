package environ

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine fills what Linux tells in /proc, uname(2) and statfs(2).
func (e *Environment) machine() {
	e.CPU = cpuModel()
	e.RAMBytes = memTotal()
	e.Load1 = load1()
	e.Governor = line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	e.CPUQuota = cpuQuota(line("/sys/fs/cgroup/cpu.max"))
	e.OnBattery = onBattery("/sys/class/power_supply")
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		e.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var fs unix.Statfs_t
	if unix.Statfs(e.Dir, &fs) == nil {
		e.Filesystem = filesystem(int64(fs.Type)) //nolint:unconvert // the type has another width on other processors
	}
}

// filesystem names a magic number of statfs(2).
func filesystem(magic int64) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case 0x2fc12fc1: // not in golang.org/x/sys/unix
		return "zfs"
	}
	return fmt.Sprintf("filesystem 0x%x", magic)
}

// field returns the text after "key:" in a file of /proc.
func field(path, key string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		name, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cpuModel returns the model of the first core. ARM kernels name none.
func cpuModel() string { return field("/proc/cpuinfo", "model name") }

// memTotal returns the memory of the machine in bytes.
func memTotal() int64 {
	kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// load1 returns the load average of the last minute.
func load1() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

// line returns the text of a file of one line, empty if there is none.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// cpuQuota reads "QUOTA PERIOD" of cpu.max, both in microseconds, as cores; empty if
// the quota is "max".
func cpuQuota(text string) string {
	var quota, period float64
	if n, err := fmt.Sscan(text, &quota, &period); n < 2 || err != nil || period <= 0 {
		return ""
	}
	return strconv.FormatFloat(quota/period, 'f', 2, 64)
}

// onBattery reports whether there is a mains supply and none is connected.
func onBattery(dir string) bool {
	supplies, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	mains, online := false, false
	for _, s := range supplies {
		if line(dir+"/"+s.Name()+"/type") == "Mains" {
			mains = true
			online = online || line(dir+"/"+s.Name()+"/online") == "1"
		}
	}
	return mains && !online
}
