package bench

import (
	"cmp"
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

// CheckTwice reports the first of some values of a flag that is given before: what is measured of both would be one
// cell.
func CheckTwice[T comparable](flag string, given []T) error {
	for i, x := range given {
		if slices.Contains(given[:i], x) {
			return Usagef("%s: %v is given twice", flag, x)
		}
	}
	return nil
}

// CheckNames reports an empty list, the first name that is not among those allowed, and one that is given twice.
func CheckNames(flag string, given, allowed []string) error {
	for _, name := range given {
		if !slices.Contains(allowed, name) {
			return Usagef("%s %s: choose from %s", flag, name, strings.Join(allowed, ", "))
		}
	}
	if len(given) == 0 {
		return Usagef("%s: nothing to measure; choose from %s", flag, strings.Join(allowed, ", "))
	}
	return CheckTwice(flag, given)
}

// CheckSeconds reports a time of a workload that makes no sense.
func CheckSeconds(seconds float64) error {
	if seconds <= 0 || seconds > 3600 {
		return Usagef("--seconds %g: want more than 0, up to 3600", seconds)
	}
	return nil
}

// Probing is what measurements of filters by themselves have in common.
type Probing struct {
	Keys        []int  `json:"-"`      // numbers of keys
	Probes      int    `json:"probes"` // keys, or ranges of each kind, that are not there
	Repetitions int    `json:"repetitions"`
	Seed        uint64 `json:"seed"`
}

// Check reports the first number that makes no sense.
func (p *Probing) Check(minKeys, maxKeys int64) error {
	bounds := []Bound{{"--probes", int64(p.Probes), 1000, 1 << 30}, {"--reps", int64(p.Repetitions), 1, 1000}}
	for _, n := range p.Keys {
		bounds = append(bounds, Bound{"--keys", int64(n), minKeys, maxKeys})
	}
	if len(p.Keys) == 0 {
		return Usagef("--keys: want at least one number, such as 100000")
	}
	return cmp.Or(CheckBounds(bounds...), CheckTwice("--keys", p.Keys))
}
