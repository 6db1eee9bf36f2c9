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
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/adapters/godatastore"
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
	flag.IntVar(&s.keys, "keys", 24_000, "blocks that are ever added, about")
	flag.IntVar(&s.ops, "ops", 60_000, "requests")
	flag.Uint64Var(&s.seed, "seed", 1, "of all that is drawn")
	flag.Parse()
	s.dir = flag.Arg(0)
	if flag.NArg() != 1 || s.keys < 100 || s.ops < 1 {
		fmt.Fprintln(os.Stderr, "usage: trace [--keys 100 or more] [--ops N] [--seed N] DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// run makes the store with two thirds of the blocks, and records the load.
func run(ctx context.Context, s settings) (err error) {
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return err
	}
	db, err := kv.Open(filepath.Join(s.dir, "store"), &kv.Options{
		MemtableSize: 2 << 20, TargetFileSize: 2 << 20, BaseLevelSize: 4 << 20, // so that a small store has many files
		CacheSize: 8 << 20,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	blocks := newRepository(s.seed, s.keys)
	n := &node{store: godatastore.New(db), of: blocks, rng: rand.New(rand.NewPCG(s.seed, 2)), gone: map[int]bool{}}
	for n.added < len(blocks.roots)*2/3 {
		if err := n.add(ctx); err != nil {
			return err
		}
	}
	err = record.Lookups(db, filepath.Join(s.dir, "trace"), func() error {
		for i := range s.ops {
			if err := n.serve(ctx, i, s.ops); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, record.Settle(ctx, db))
}
