//go:build unix

package bench

import (
	"syscall"
	"time"
)

// CPU returns the time that this process has used on processors.
func CPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
