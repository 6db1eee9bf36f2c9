//go:build race

package kv

// raceFactor makes the long random tests shorter under the race detector, which
// makes them slower by as much.
const raceFactor = 4
