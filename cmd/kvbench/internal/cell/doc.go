// Package cell runs one cell of an experiment: one engine with one filter, one tree,
// one cache and one workload, whose result is the same file whenever it is run, but
// for its times.
//
// A Lab runs one cell after another and keeps the last store, so that cells that differ in
// cache or workload share it; or it builds the stores of several cells and measures them in
// turns. Either way a store is loaded, settled or grown, and opened anew; lookups are drawn,
// a warm-up is made, and each repetition times one loop with its counters and then single
// lookups, and checks every answer.
package cell
