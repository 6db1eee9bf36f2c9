// Command trace makes a bleve index of Go's own sources, and a trace of the lookups of indexing and searches:
//
//	go run ./internal/trace [--keys N] [--ops N] [--seed N] DIR
//
// The store is DIR/store and the trace, which has the keys, DIR/trace; DIR is not there yet. The texts
// are real, the searches are drawn from them: see requests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/upsidedown"

	siftbleve "github.com/siftkv/siftkv/adapters/bleve"
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
	flag.IntVar(&s.keys, "keys", 2_500, "files to index, at most")
	flag.IntVar(&s.ops, "ops", 15_000, "searches")
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

// run makes the index. Its second half and the searches are recorded.
func run(s settings) (err error) {
	docs, err := sources(s.keys)
	if err != nil {
		return err
	}
	index, err := bleve.NewUsing(s.dir, goMapping(), upsidedown.Name, siftbleve.Name, map[string]any{
		"memtable_size": 2 << 20, "memory_limit": 16 << 20, "nosync": true, // so that a small store has several runs
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	half := len(docs) / 2
	if err := fill(index, docs[:half]); err != nil {
		return err
	}
	db, err := storeOf(index)
	if err != nil {
		return err
	}
	err = record.Lookups(db, filepath.Join(s.dir, "trace"), func() error {
		if err := fill(index, docs[half:]); err != nil {
			return err
		}
		// Terms are counted by Merge, and who opens the store without bleve cannot read such counts.
		if err := db.Compact(context.Background(), []byte{'d'}, []byte{'e'}); err != nil {
			return err
		}
		return search(index, docs, s.ops, s.seed)
	})
	return errors.Join(err, record.Settle(context.Background(), db))
}

func storeOf(index bleve.Index) (*kv.DB, error) {
	advanced, err := index.Advanced()
	if err != nil {
		return nil, err
	}
	store, err := advanced.(*upsidedown.UpsideDownCouch).Advanced()
	if err != nil {
		return nil, err
	}
	return store.(*siftbleve.Store).DB(), nil
}
