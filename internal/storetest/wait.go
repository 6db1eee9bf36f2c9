package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/racebuild"
)

// Fine requires that there is no error. It is require.NoError for what is called for each key: to say who called
// what takes longer than most calls of a store.
func Fine(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		require.NoError(tb, err)
	}
}

// Until returns when what another goroutine is about to do is done. It panics where that does not come within minutes.
func Until(done func() bool) {
	end := time.Now().Add(5 * time.Minute)
	for wait := time.Microsecond; !done(); wait = min(2*wait, time.Millisecond) {
		if time.Sleep(wait); time.Now().After(end) { // others have the processor meanwhile
			panic("what the test waits for has not come in five minutes")
		}
	}
}

// RaceFactor makes the long random tests shorter under the race detector, which
// makes them slower by as much.
const RaceFactor = racebuild.Slowdown
