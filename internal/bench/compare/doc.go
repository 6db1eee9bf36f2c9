// Package compare runs the same workloads on several engines, each in a process of
// its own, and says how many times as fast one is as the others.
//
// The parent (Run) starts a worker process for every store (Serve) and tells each in
// turn what to do; the others wait meanwhile. Workers draw keys, time themselves and
// check every answer; a wrong one ends the run.
package compare
