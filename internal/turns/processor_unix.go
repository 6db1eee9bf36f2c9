//go:build unix

package turns

import (
	"syscall"
	"time"
)

// ProcessorTimeMeasured reports whether ProcessorTime is what the process has used on processors.
const ProcessorTimeMeasured = true

// ProcessorTime returns the time that the process has used on processors.
func ProcessorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return time.Since(began)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
