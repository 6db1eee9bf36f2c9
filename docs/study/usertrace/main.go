// Command usertrace makes a store of users and a trace of the lookups that a service on it does:
//
//	go run ./docs/study/usertrace [--keys N] [--ops N] [--seed N] DIR
//
// The store is DIR/store and the trace, with keys, is DIR/trace. DIR must not exist. The service has a black list,
// users by identifier, and an index of their names; it looks up what examples/guard looks up in its database, in the
// same order, and the users of a feed, without filters and a cache in front. A normal day is four fifths of the
// lookups, an attack with identifiers that do not exist the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

const (
	skew        = 1.1     // of Zipf's law: few users get most of the visits
	absent      = 1 << 51 // identifiers of no users are above it
	signedUp    = 1 << 31 // identifiers of sign-ups are above it
	profileSize = 160     // bytes of a row beside the name
)

type settings struct {
	keys, ops int
	seed      uint64
	dir       string
}

func main() {
	var s settings
	flag.IntVar(&s.keys, "keys", 300_000, "users before the load")
	flag.IntVar(&s.ops, "ops", 40_000, "visits")
	flag.Uint64Var(&s.seed, "seed", 1, "of all that is drawn")
	flag.Parse()
	s.dir = flag.Arg(0)
	if flag.NArg() != 1 || s.keys < 100 || s.ops < 10 {
		fmt.Fprintln(os.Stderr, "usage: usertrace [--keys 100 or more] [--ops 10 or more] [--seed N] DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "usertrace:", err)
		os.Exit(1)
	}
}

// run makes the store with the users, and records the visits.
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
	random := rand.New(rand.NewPCG(s.seed, 0))
	v := &service{db: db, random: random, popular: rand.NewZipf(random, skew, 1, uint64(s.keys-1))}
	if err := v.seed(s.keys); err != nil {
		return err
	}
	err = record.Lookups(db, filepath.Join(s.dir, "trace"), func() error {
		for range s.ops * 4 / 5 {
			if err := v.visit(random.IntN(100)); err != nil {
				return err
			}
		}
		for range s.ops / 5 {
			id := v.user()
			if random.IntN(10) > 0 {
				id = v.absentUser()
			}
			if err := v.find(id); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, record.Settle(ctx, db))
}
