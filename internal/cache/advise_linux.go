//go:build !race

package cache

import "golang.org/x/sys/unix"

// Advice that fails costs speed or memory, and nothing else.

func adviseHuge(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
func dontNeed(mem []byte)   { _ = unix.Madvise(mem, unix.MADV_DONTNEED) }
