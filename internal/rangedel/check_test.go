package rangedel

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/scale"
)

// check checks a property, in long tests the usual number of times, else less often; a number that is given by flag or
// environment stands.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	const usual = 100
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == strconv.Itoa(usual) {
		require.NoError(t, checks.Value.Set(strconv.Itoa(scale.Count(30, usual))))
	}
	rapid.Check(t, property)
}
