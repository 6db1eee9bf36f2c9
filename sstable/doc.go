// Package sstable writes and reads sorted, immutable files of keys and values.
//
// A file is a run of data blocks and a tail. The tail holds everything that a
// lookup asks before it reads a block, in one piece, so that one read opens the
// file (docs/format.md has every byte):
//
//	┌────────┬────────┬─────┬────────┐┌────────────┬────────┬───────┬────────────┬────────┐
//	│ data 0 │ data 1 │ ... │ data n ││ range dels │ filter │ index │ properties │ footer │
//	└────────┴────────┴─────┴────────┘└────────────┴────────┴───────┴────────────┴────────┘
//	  read one at a time, cached         tail: read once, kept in memory
//
// A lookup in a file is filter, index, block, in this order: the filter says
// "no" or "maybe" for the key's hash, the index names the only block that could
// hold the key, and a hash table inside the block leads to the key without a
// search. Every block carries a CRC-32C that is bound to its file and offset.
//
// A file stands alone. Use a [Writer] to make one from sorted keys and a
// [Reader] to look keys up:
//
//	w := sstable.NewWriter(file, nil)
//	err := w.Set(key, value) // ascending keys
//	info, err := w.Finish()
//
//	r, err := sstable.Open(path, nil)
//	value, err := r.Get(key)
//
// The store in package kv keeps many versions of a key in a file; its keys carry
// a sequence number and a kind. Files written with Set and Delete have sequence
// number zero, and none of this shows.
package sstable
