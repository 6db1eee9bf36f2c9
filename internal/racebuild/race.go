//go:build race

package racebuild

// Enabled reports whether the race detector is in the program.
const Enabled = true

// Slowdown is by how much long tests are cut under the race detector: most of a program takes
// several times as long with it. It is 1 without.
const Slowdown = 4
