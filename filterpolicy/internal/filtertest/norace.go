//go:build !race

package filtertest

import "math"

const (
	raceShare = 1
	raceKeys  = math.MaxInt
)
