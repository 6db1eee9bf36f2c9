// Package engine puts the stores that kvbench compares under one interface, so
// that one loop loads, asks and counts them all.
//
// A Store is loaded and settled once. A Reader is one way to look keys up in
// it: Pebble, for one, has two that differ in whether they consult the filters
// of the last level. A counter that an engine does not keep is Unknown, which is
// not the same as zero.
package engine
