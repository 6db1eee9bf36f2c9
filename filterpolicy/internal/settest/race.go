//go:build race

package settest

// Share returns n, or a fraction of it under the race detector, which makes
// loops over hashes many times slower and has little to find in them.
func Share(n int) int { return n / 20 }
