//go:build race

package blocked_test

func init() { raceDetector = true }
