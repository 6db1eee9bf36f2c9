// Package hostile is for tests of decoders: it changes what they are given as an adversary
// would, and holds what they allocate against the number of bytes that they were given.
//
// Bytes from a disk or a peer may say that a million entries follow, or a terabyte. A
// decoder that believes them is at the mercy of their author, checksums or not. So each
// has a bound, linear in its input, and a test with Hostile or Bomb in its name in it. A
// test of package archtest knows all decoders, and asks for the test of each.
package hostile

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// A Bound is how many bytes a decoder may allocate for an input: PerByte for each of its
// bytes, and Fixed.
type Bound struct{ PerByte, Fixed uint64 }

// Of returns the bound for an input of n bytes.
func (b Bound) Of(n int) uint64 { return b.PerByte*uint64(n) + b.Fixed }

// tries is how often a decoder is measured that seems to allocate too much: what other
// goroutines allocate in the meantime counts as its own, and what it keeps in pools it
// allocates once.
const tries = 5

// Require fails the test if decode allocates more than the bound for an input of n bytes,
// freed memory included, each time that it is called.
func (b Bound) Require(tb testing.TB, n int, decode func()) {
	tb.Helper()
	if allocatedSinceLast(decode) <= b.Of(n) { // decode had a part of it at most
		return
	}
	least := allocated(decode)
	for i := 1; i < tries && least > b.Of(n); i++ {
		least = min(least, allocated(decode))
	}
	if least > b.Of(n) {
		tb.Fatalf("%d bytes were given, %d allocated: want %d × input + %d = %d at most", n, least, b.PerByte,
			b.Fixed, b.Of(n))
	}
}

// last is what the program had allocated when allocatedSinceLast last asked.
var last atomic.Uint64

// allocatedSinceLast returns how many bytes the program allocates from its last call to the end of f. It asks once,
// where allocated asks twice: each question stops the program.
func allocatedSinceLast(f func()) uint64 {
	before := last.Load()
	f()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	last.Store(after.TotalAlloc)
	return after.TotalAlloc - before
}

// allocated returns how many bytes the program allocates during f.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
