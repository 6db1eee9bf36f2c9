// Package readamp measures read amplification: what a lookup of an existing key
// and of an absent key costs, in files, filter checks, blocks, bytes and time,
// on several engines with several filters.
//
// A run measures its rows as cells in turns (cell.Lab.Interleave), and compares two trees of
// several levels whose filters take the same memory: with uniform bits, and with a filter
// budget. It then relates the rows to each other, and holds the counters against each other
// and against the truth. Run is the only way in.
package readamp
