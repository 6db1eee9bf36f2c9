//go:build !unix

package kv

import "testing"

// processorTime is Unix's.
func processorTime(b *testing.B) float64 {
	b.Skip("the system does not tell what time of processors the process has used")
	return 0
}
