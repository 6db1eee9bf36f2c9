package environ

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// loadShift is how the system's load averages are scaled.
const loadShift = 16 // SI_LOAD_SHIFT

// machine fills what Linux tells in /proc, sysinfo(2), uname(2) and statfs(2).
func (e *Environment) machine() {
	e.CPU = cpuModel()
	e.Governor = line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	e.CPUQuota = cpuQuota(line("/sys/fs/cgroup/cpu.max"))
	e.OnBattery = onBattery("/sys/class/power_supply")
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		e.RAMBytes = int64(info.Totalram) * int64(info.Unit)
		e.Load1 = math.Round(100*float64(info.Loads[0])/(1<<loadShift)) / 100
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		e.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var fs unix.Statfs_t
	if unix.Statfs(e.Dir, &fs) == nil {
		e.Filesystem = filesystem(int64(fs.Type)) //nolint:unconvert // the type has another width on other processors
	}
}

// filesystems are the names of magic numbers of statfs(2).
var filesystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	unix.F2FS_SUPER_MAGIC: "f2fs", unix.NFS_SUPER_MAGIC: "nfs", unix.FUSE_SUPER_MAGIC: "fuse",
	0x2fc12fc1: "zfs", // not in golang.org/x/sys/unix
}

func filesystem(magic int64) string {
	return cmp.Or(filesystems[magic], fmt.Sprintf("filesystem 0x%x", magic))
}

// cpuModel returns the model of the first core. ARM kernels name none.
func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		name, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
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
