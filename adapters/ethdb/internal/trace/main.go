// Command trace makes a store like that of an Ethereum node, and a trace of the lookups of an import of blocks:
//
//	go run ./internal/trace [--keys N] [--ops N] [--seed N] DIR
//
// The store is DIR/store and the trace, which has the keys, DIR/trace; DIR is not there yet. What the load is made
// of is in the file chain.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	siftethdb "github.com/siftkv/siftkv/adapters/ethdb"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

type settings struct {
	keys, ops int
	seed      uint64
	dir       string
}

func main() {
	var s settings
	flag.IntVar(&s.keys, "keys", 200_000, "accounts before the first block")
	flag.IntVar(&s.ops, "ops", 200, "blocks to import")
	flag.Uint64Var(&s.seed, "seed", 1, "of all that is drawn")
	flag.Parse()
	s.dir = flag.Arg(0)
	if flag.NArg() != 1 || s.keys < 100 || s.ops < 1 {
		fmt.Fprintln(os.Stderr, "usage: trace [--keys 100 or more] [--ops N] [--seed N] DIR")
		os.Exit(2)
	}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// run makes the store with the accounts, and records the import.
func run(s settings) (err error) {
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return err
	}
	db, err := kv.Open(filepath.Join(s.dir, "store"), &kv.Options{
		MemtableSize: 2 << 20, TargetFileSize: 2 << 20, BaseLevelSize: 4 << 20, // so that a small store has many files
		CacheSize: 8 << 20, Compaction: kv.Tiered,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := newChain(siftethdb.New(db), s.seed, s.keys)
	if err := c.genesis(); err != nil {
		return err
	}
	err = record.Lookups(db, filepath.Join(s.dir, "trace"), func() error {
		for range s.ops {
			if err := c.importBlock(); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, record.Settle(context.Background(), db))
}
