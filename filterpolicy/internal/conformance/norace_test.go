//go:build !race

package conformance

import "math"

const (
	raceShare = 1
	raceKeys  = math.MaxInt
)
