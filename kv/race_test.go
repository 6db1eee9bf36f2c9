package kv

import "github.com/siftkv/siftkv/internal/racebuild"

// raceFactor makes the long random tests shorter under the race detector, which
// makes them slower by as much.
const raceFactor = racebuild.Slowdown
