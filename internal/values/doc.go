// Package values has the blob values of one store: it reads them, and owns the blob files that no version lists yet.
//
// A blob value is found in two steps. A table or memtable has a handle. A blob file of the same version has the value,
// or an unlisted one that the memtable holds.
//
// A blob file is unlisted if it was written before a table refers to it: a stream of SetReader writes one, and with
// SeparateAtCommit each log has one. The live bytes of a version's files are sums over tables, so no version can list
// it. The memtable with the handles holds the file, and the log keeps recovery from removing it. The flush of that
// memtable lists the file. If no table refers to it then, it is removed once the memtable is no longer read.
package values
