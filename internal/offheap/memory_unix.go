//go:build unix

package offheap

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is what the region is aligned to, so that large pages fit into it.
const hugePage = 2 << 20

// Large pages are requested for regions of at least minHuge bytes: a small cache of few
// blocks should not cost a large page.
const minHuge = 32 << 20

// reserve returns size zeros that are no part of the Go heap, and what unreserve wants to
// have; nil if the system gives none.
func reserve(size int64) (mem, mapping []byte) {
	mapping, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	return mapping, mapping
}

// reserveHuge is reserve with room for large pages. The system gives memory as it is written to, and is asked not to
// hold size against what it has: a capacity may be larger than the machine. Nil if the system gives no address space.
// The Go heap would not have it either, and ends the process when it is refused.
func reserveHuge(size int64) (mem, mapping []byte) {
	if size > math.MaxInt-hugePage {
		return nil, nil
	}
	mapping, err := unix.Mmap(-1, 0, int(size)+hugePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|noReserve)
	if err != nil {
		return nil, nil
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mapping))) % hugePage
	mem = mapping[skip : int64(skip)+size]
	if size >= minHuge {
		adviseHuge(mem)
	}
	return mem, mapping
}

// unreserve gives the region back.
func unreserve(mapping []byte) {
	// It can fail only for a region that reserve did not return.
	_ = unix.Munmap(mapping)
}

// discard returns the memory of the whole pages in mem to the system. Their content is lost.
func discard(mem []byte) {
	page := uintptr(unix.Getpagesize())
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % page
	if uintptr(len(mem)) < skip+page {
		return
	}
	n := (uintptr(len(mem)) - skip) &^ (page - 1)
	dontNeed(mem[skip : skip+n])
}
