package conformance

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// leastChecks is the number of checks that say something of a property.
const leastChecks = 20

// Check checks a property, in long tests the usual number of times, else less often; a number that is given by flag
// or environment stands.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	const usual = 100
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == strconv.Itoa(usual) {
		if err := checks.Value.Set(strconv.Itoa(max(leastChecks, Share(usual)))); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, property)
}
