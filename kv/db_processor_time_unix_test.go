//go:build unix

package kv

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// processorTime returns the nanoseconds that the process has used, in user and kernel mode.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
