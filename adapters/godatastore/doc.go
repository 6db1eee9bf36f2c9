// Package godatastore is a datastore of IPFS (github.com/ipfs/go-datastore) over a SiftKV store:
//
//	ds, err := godatastore.Open(dir, nil)
//
// It batches, has transactions and values that expire, checks itself, reports the disk space that it takes
// and gives space back (Batching, TxnDatastore, TTLDatastore, CheckedDatastore, PersistentDatastore,
// GCDatastore).
//
// Writes are with the operating system when they return (kv.NoSync) and survive a crash of the process;
// Sync makes them durable, those under other prefixes too. A batch takes effect at one moment. A query sees
// the store as it was when it was asked; one by prefix, in the order of keys or against it, reads no more
// than what it returns, and a query for keys alone reads no values.
package godatastore
