package conformance

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

// leastChecks is the number of checks that say something of a property.
const leastChecks = 20

// Check checks a property, in long tests the usual number of times, else less often.
func Check(t *testing.T, holds func(*rapid.T)) {
	t.Helper()
	property.Often(max(leastChecks, Share(property.Usual)))
	property.Check(t, holds)
}
