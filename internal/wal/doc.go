// Package wal writes and reads logs of records: the write-ahead log of the store, and its manifest.
//
// One Writer appends to a log, from its creation to its end. A Reader returns the records in order and reports exactly
// how the log ends: cleanly, at a record's end, with a torn tail, or in damage. The caller decides what that means, and
// whether to continue past damage.
//
// The log is a sequence of blocks, the blocks of fragments, and the records are put together from fragments, so that a
// Reader can continue past damage. Every fragment is checksummed and bound to its log and its place in it. The bytes
// are described in format.go.
//
// # Sources
//
// Blocks and fragments are those of LevelDB's log format; binding checksums to a log is RocksDB's and Pebble's
// "recyclable" format, and recording what was synced is an idea of Pebble's.
package wal
