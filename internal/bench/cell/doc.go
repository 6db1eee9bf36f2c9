// Package cell runs one cell of an experiment: one engine with one filter, one tree,
// one cache and one workload, whose result is the same file whenever it is run, but
// for its times.
//
//	settings   what a cell is, its text, its hash and its file name
//	build      the store: load, and settle, grow or leave young files
//	lookups    warm or cold; timed loops with their counters, single lookups
//	result     everything that was found out, in JSON
//	metrics    the same as a flat list of named numbers, which reports and diff use
//
// A Lab runs one cell after another and keeps the last store, so that cells that
// differ in cache or workload share it.
package cell
