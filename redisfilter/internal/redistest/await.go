package redistest

import (
	"testing"
	"time"
)

const (
	pollInterval = 10 * time.Millisecond // at most

	// tellAfter is when Await says what it waits for: what a machine does at once needs no line in the log.
	tellAfter = 30 * time.Second
)

// Await waits until condition, which it calls on the caller's goroutine, returns true. It has no limit of its
// own, as no time is long enough for every machine: what never happens ends with the time limit of go test, and
// the log says by then what was waited for.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	begun, told, pause := time.Now(), false, time.Millisecond
	for !condition() {
		if !told && time.Since(begun) > tellAfter {
			told = true
			t.Logf("redistest: still waiting: %s", what)
		}
		time.Sleep(pause)
		pause = min(2*pause, pollInterval)
	}
}
