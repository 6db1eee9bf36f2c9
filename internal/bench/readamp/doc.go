// Package readamp measures read amplification: what a lookup of an existing key
// and of an absent key costs, in files, filter checks, blocks, bytes and time,
// on several engines with several filters.
//
// A run goes through these steps; Run is the only way in:
//
//	plan      which stores to build, and which rows to measure on them
//	load      the same keys in the same order into every store; settle; reopen
//	measure   a warm-up, then repetitions that visit every row in turn
//	budget    uniform bits against a filter budget, on trees of several levels
//	summarise medians, percentiles, false-positive rates
//	check     the counters against each other and against the truth
//
// All stores are open at once, so that the rows of one repetition follow each
// other closely and a slow minute of the machine hits all of them.
package readamp
