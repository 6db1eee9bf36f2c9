//go:build race

package conformance

// The race detector makes loops over hashes many times slower and has little to
// find in them; a part of each test shows as much.
const (
	raceShare = 20
	raceKeys  = 10_000
)
