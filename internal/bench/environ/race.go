//go:build race

package environ

// raceEnabled tells whether the race detector is in the program.
const raceEnabled = true
