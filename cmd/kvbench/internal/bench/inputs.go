package bench

import (
	"slices"
	"strings"
)

// Compressions lists the names of compressions that a store may be made with.
var Compressions = []string{"none", "snappy", "zstd"}

// A Bound is a number under the name of its flag, with the least and the most that it
// may be.
type Bound struct {
	Flag             string
	Value, Low, High int64
}

// CheckBounds reports the first number that is not within its bounds.
func CheckBounds(bounds ...Bound) error {
	for _, b := range bounds {
		if b.Value < b.Low || b.Value > b.High {
			return Usagef("%s %d: want %d to %d", b.Flag, b.Value, b.Low, b.High)
		}
	}
	return nil
}

// CheckNames reports an empty list, and the first name that is not among those allowed.
func CheckNames(flag string, given, allowed []string) error {
	for _, name := range given {
		if !slices.Contains(allowed, name) {
			return Usagef("%s %s: choose from %s", flag, name, strings.Join(allowed, ", "))
		}
	}
	if len(given) == 0 {
		return Usagef("%s: nothing to measure; choose from %s", flag, strings.Join(allowed, ", "))
	}
	return nil
}

// CheckSeconds reports a time of a workload that makes no sense.
func CheckSeconds(seconds float64) error {
	if seconds <= 0 || seconds > 3600 {
		return Usagef("--seconds %g: want more than 0, up to 3600", seconds)
	}
	return nil
}
