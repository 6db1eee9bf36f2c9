// Package sstable writes and reads sorted, immutable files of keys and values.
//
// A file is a run of data blocks and a tail. The tail holds everything that a lookup asks before it reads a block, in
// one piece, so that one read opens the file (docs/format.md has every byte):
//
//	┌────────┬────────┬─────┬────────┐┌────────────┬────────┬───────┬────────────┬────────┐
//	│ data 0 │ data 1 │ ... │ data n ││ range dels │filters │ index │ properties │ footer │
//	└────────┴────────┴─────┴────────┘└────────────┴────────┴───────┴────────────┴────────┘
//	  read one at a time, cached         tail: read once, kept in memory
//
// A lookup asks the filter, the index and one block, in this order. The filter says "no" or "maybe" for the key's hash.
// The index names the only block that could hold the key. A hash table inside the block leads to the key without a
// search. A second filter may answer for ranges of keys: a scan with bounds then skips a file that has nothing between
// them (WriterOptions.RangeFilter). Every block carries a CRC-32C that is bound to its file and offset.
//
// A file stands alone. A Writer makes one from sorted keys, a Reader looks keys up, and an Iter walks them:
//
//	w := sstable.NewWriter(file, nil)
//	err := w.Set(key, value) // ascending keys
//	info, err := w.Finish()
//
//	r, err := sstable.Open(path, nil)
//	value, err := r.Get(key)
//	it := r.NewIter(sstable.IterOptions{})
//	for ok := it.SeekGE(key); ok; ok = it.Next() {
//		use(it.Key(), it.Value())
//	}
//	err = it.Close()
//
// The store of package kv takes such a file in with DB.Ingest. Its own files have this format too, with several
// versions of a key, each under a sequence number, and with range tombstones, merge operands and values that expire. A
// Reader shows the newest version of each key in them.
package sstable
