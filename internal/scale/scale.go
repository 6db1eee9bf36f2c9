// Package scale sets the size of tests that could have any size: how many seeds, rounds, power cuts or keys.
// Tests are quick by default. The environment variable LONG=1 makes them long, and LONG=n makes them n times as long.
// LONG=0 is for what goroutines do to each other: tests that repeat themselves have fewer rounds (Fewer). So it is
// under the race detector by default, which slows a program down, and leaves out tests of one goroutine (OneGoroutine).
// With LONG=1 tests are shorter under it. Every size does everything once.
package scale

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/siftkv/siftkv/internal/racebuild"
)

// long is the value of LONG, or 0 if it is not set.
var long = parse(os.Getenv("LONG"))

// meetings is whether only goroutines that meet are tested.
var meetings = long == 0 && (racebuild.Enabled || os.Getenv("LONG") != "")

func parse(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		panic(fmt.Sprintf("LONG=%q: give a whole number, or leave it out", text))
	}
	return n
}

// Long reports whether tests are long.
func Long() bool { return long > 0 }

// Count returns how often a test repeats something: n by default, LONG times nLong with LONG, and at least 1.
func Count(n, nLong int) int { return count(n, nLong, long, racebuild.Slowdown) }

func count(n, nLong, times, slowdown int) int {
	full := nLong * max(times, 1) / slowdown
	if times > 0 {
		n = full
	}
	return max(min(n, full), 1)
}

// Fewer returns how often a quick test repeats something: n, or fewer with LONG=0 and under the race detector. Later
// rounds are for what the code computes. Goroutines meet in the first ones.
func Fewer[N int | uint64](n, fewer N) N {
	if meetings {
		return fewer
	}
	return n
}

// Stride returns the distance between the places that a test tries, of which there are more the smaller it is: n by
// default, nLong divided by LONG with LONG, and at least 1.
func Stride(n, nLong int) int { return stride(n, nLong, long, racebuild.Slowdown) }

func stride(n, nLong, times, slowdown int) int {
	if times > 0 {
		n = max(nLong/times, 1)
		if n == 1 && times > 1 { // every place was asked for
			return 1
		}
	}
	return n * slowdown
}

// OneGoroutine skips a test under the race detector, which has nothing to find in it. Its code runs on a single
// goroutine, or other tests run its goroutines. The reason says which.
func OneGoroutine(t testing.TB, reason string) {
	t.Helper()
	if racebuild.Enabled {
		t.Skip("not under the race detector: " + reason)
	}
}

// Alone panics if the test, or one that it is part of, is parallel: what it measures or sets is the whole process's.
func Alone(t testing.TB) {
	t.Helper()
	t.Setenv("SIFTKV_TEST_ALONE", "1") // the testing package refuses it in a parallel test
}

// Waiting is for the TestMain of a package with parallel tests that wait, for servers or for time to pass: n of them
// run at once, unless the command line gives a number. Without it, one runs per processor.
func Waiting(n int) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.Itoa(n)) // a number always is one
	}
}
