package kv

import "unsafe"

// ownStripe returns the stripe of counters and references that the calling goroutine uses,
// by the position of its stack. A goroutine stays on one processor for a while, and so do
// the cache lines of its stripe. Stripes picked by the hash of the key, as any other that
// all goroutines share, made a lookup of an absent key a third slower on two processors than
// on one.
func ownStripe() int {
	var here byte
	const multiplier = 0x9e3779b97f4a7c15
	at := uint64(uintptr(unsafe.Pointer(&here))) >> stackShift
	return int(at * multiplier >> (64 - stripeBits))
}

const (
	stripeBits = 4
	stackShift = 11 // the smallest stack has 2 KiB
)

// There are as many stripes as stripeBits tell apart.
var _ [numStripes - 1<<stripeBits]struct{}
