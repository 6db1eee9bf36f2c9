// Command trace makes a store like that of an IPFS node, and a trace of the lookups of a load:
//
//	go run ./internal/trace [--keys N] [--ops N] [--seed N] DIR
//
// The store is DIR/store and the trace, which has the keys, DIR/trace; DIR is not there yet. What the load is made
// of is in the types repository and node.
package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/adapters/godatastore"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

func main() {
	record.Main(record.Load{Keys: 24_000, Ops: 60_000}, "blocks that are ever added, about", "requests", run)
}

// run makes the store with two thirds of the blocks, and records the load.
func run(ctx context.Context, s record.Load) (err error) {
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		return err
	}
	db, err := kv.Open(filepath.Join(s.Dir, "store"), &kv.Options{
		MemtableSize: 2 << 20, TargetFileSize: 2 << 20, BaseLevelSize: 4 << 20, // so that a small store has many files
		CacheSize: 8 << 20,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	blocks := newRepository(s.Seed, s.Keys)
	n := &node{store: godatastore.New(db), of: blocks, rng: rand.New(rand.NewPCG(s.Seed, 2)), gone: map[int]bool{}}
	for n.added < len(blocks.roots)*2/3 {
		if err := n.add(ctx); err != nil {
			return err
		}
	}
	err = record.Lookups(db, filepath.Join(s.Dir, "trace"), func() error {
		for i := range s.Ops {
			if err := n.serve(ctx, i, s.Ops); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, record.Settle(ctx, db))
}
