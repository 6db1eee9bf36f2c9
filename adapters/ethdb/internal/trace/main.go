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
	"os"
	"path/filepath"

	siftethdb "github.com/siftkv/siftkv/adapters/ethdb"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

func main() {
	record.Main(record.Load{Keys: 200_000, Ops: 200}, "accounts before the first block", "blocks to import", run)
}

// run makes the store with the accounts, and records the import.
func run(ctx context.Context, s record.Load) (err error) {
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		return err
	}
	db, err := kv.Open(filepath.Join(s.Dir, "store"), &kv.Options{
		MemtableSize: 2 << 20, TargetFileSize: 2 << 20, BaseLevelSize: 4 << 20, // so that a small store has many files
		CacheSize: 8 << 20, Compaction: kv.Tiered,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c := newChain(siftethdb.New(db), s.Seed, s.Keys)
	if err := c.genesis(); err != nil {
		return err
	}
	err = record.Lookups(db, filepath.Join(s.Dir, "trace"), func() error {
		for range s.Ops {
			if err := c.importBlock(); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, record.Settle(ctx, db))
}
