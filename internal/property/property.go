// Package property checks properties with the same draws each time, so that only a change can turn a test red. With
// LONG=1, or where -rapid.seed says so, the draws are others. Under the race detector and with LONG=0 there are fewer.
package property

import (
	"flag"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/scale"
)

// Usual is how often a property is checked.
const Usual = 100

var settled sync.Once

// Check checks a property.
func Check(t testing.TB, holds func(*rapid.T)) {
	t.Helper()
	Often(Usual)
	rapid.Check(t, holds)
}

// Often has the process check properties n times. The first call counts, and a number that is given by flag or
// environment stands.
func Often(n int) {
	settled.Do(func() {
		if !scale.Long() {
			replace("rapid.seed", 0, 1)
			n = scale.Fewer(n, (n+3)/4)
		}
		replace("rapid.checks", Usual, n)
	})
}

// replace sets a flag that has a value.
func replace(name string, old, value int) {
	f := flag.Lookup(name)
	if f.Value.String() != strconv.Itoa(old) {
		return
	}
	if err := f.Value.Set(strconv.Itoa(value)); err != nil {
		panic(err)
	}
}
