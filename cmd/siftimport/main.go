// Command siftimport makes a SiftKV store of a store of Pebble, goleveldb, Badger or bbolt, which it does not change:
//
//	siftimport pebble:/path/to/store dest
//	siftimport leveldb:/path/to/store dest
//	siftimport badger:/path/to/store dest
//	siftimport bbolt:/path/to/file dest --bucket users
//
// It reads all keys in order, writes sorted files, takes them all into the new store at one moment, and reads both
// stores again to compare them. Interrupted or killed, it goes on where it stopped when it is started again. Standard
// output carries the result, standard error progress and errors. The README says what becomes of what SiftKV does
// not have.
package main

import (
	"os"

	"github.com/siftkv/siftkv/internal/cli"
)

func main() {
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	cli.Main(p.run)
}
