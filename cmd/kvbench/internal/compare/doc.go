// Package compare runs the same workloads on several engines, each in a process of
// its own, and says how many times as fast one is as the others.
//
// The parent (Run) starts a worker process for every store (Serve) and tells each in
// turn what to do; the others wait meanwhile. Workers draw keys, time themselves and
// check every answer; a wrong one ends the run.
//
// Scale shows how the cost of a lookup, and the memory per key, grow with the number of
// keys. A lookup makes a number of dependent loads from memory that should not depend on
// the number of keys; what a load costs does, since more of it comes from further away.
// So the time of one such load, from as much memory as the store has pinned, is measured
// beside the lookups.
package compare
