// Package siftwalletdb is a driver of btcwallet's walletdb that keeps wallets in a SiftKV store.
//
// Importing it registers the driver under [Name]:
//
//	import _ "github.com/siftkv/siftkv/adapters/walletdb"
//
//	db, err := walletdb.Create("siftkv", "wallet", &kv.Options{MemoryLimit: 64 << 20}) // or Open
//
// # Arguments
//
// Create and Open take the directory of the store, and then any of these, each once: *kv.Options, which are [kv.Small]
// without it; a time.Duration, how
// long to wait for another process that has the store open (0: as long as it takes; without it, not at all: the error
// matches walletdb.ErrDbAlreadyOpen); and a bool, which says nothing here, so that the arguments of the driver
// "bdb" are good for this one too.
//
// Create makes a database, and returns walletdb.ErrDbExists if there is one: it does not open it, as bdb's does. Open
// returns walletdb.ErrDbDoesNotExist if there is none. What it finds that is something else matches
// walletdb.ErrInvalid.
//
// # What is promised
//
// As in bdb, one transaction at a time writes, others wait for it, and readers, any number of them, see the database
// as it was when they began. A transaction is durable when Commit returns. It belongs to one goroutine. Close waits
// until all transactions have ended. Update runs its function once: there is nothing to conflict with. Batch runs
// functions of several goroutines in one transaction, and so syncs once for all; one that fails is run again by
// itself.
//
// Errors are those of walletdb where it has one. A read that fails for another reason, such as a damaged file, has no
// way to say so in this interface: it finds nothing, and the error is returned by what ends the transaction, which
// then writes nothing: Commit, Rollback, Update and View.
//
// # Beyond what walletdb asks for
//
// Keys and values are copies, which stay as they are. Cursors and buckets stay valid whatever is written: a cursor sees
// what its transaction writes, and after Delete it is between the neighbours of what it was on. A bucket that was
// deleted, with those in it, has nothing in it and takes nothing.
//
// Keys, and names of buckets, have 1 to 32,768 bytes, as in bbolt; values up to 256 MiB; a transaction writes up to 1
// GiB.
package siftwalletdb
