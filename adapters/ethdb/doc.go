// Package siftethdb is a key-value store of go-ethereum (ethdb.KeyValueStore) over a SiftKV store:
//
//	db, err := siftethdb.Open(file, nil)
//	...
//	chain, err := rawdb.Open(db, rawdb.OpenOptions{Ancient: ancients})
//
// Writes are in memory when they return and with the operating system soon after (kv.Async), as those of
// go-ethereum's own Pebble store are; SyncKeyValue makes them durable. A crash takes the last of them, never
// one from the middle. A batch takes effect at one moment, and so does a DeleteRange, however many keys it
// removes: it never returns ethdb.ErrTooManyKeys.
package siftethdb
