package offheap

import "golang.org/x/sys/unix"

// noReserve asks for address space alone.
const noReserve = unix.MAP_NORESERVE

// Advice that fails costs speed or memory, and nothing else.

func adviseHuge(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
func dontNeed(mem []byte)   { _ = unix.Madvise(mem, unix.MADV_DONTNEED) }
