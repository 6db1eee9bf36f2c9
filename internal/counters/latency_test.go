package counters

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that does the same in turns of sixteen has all of it timed.
func TestTimedOperationsAreNotAlwaysTheSameOfATurn(t *testing.T) {
	l := NewLatencies()
	var at [timedOneIn]int
	for i := range 1 << 12 {
		if l.Begin(Get) != NotTimed {
			at[i%timedOneIn]++
		}
	}
	for i, n := range at {
		require.Positive(t, n, "place %d of %v", i, at)
	}
}
