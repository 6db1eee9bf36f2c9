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

func main() {
	record.Main(record.Load{Keys: 300_000, Ops: 40_000}, "users before the load", "visits", run)
}

// run makes the store with the users, and records the visits.
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
	random := rand.New(rand.NewPCG(s.Seed, 0))
	v := &service{db: db, random: random, popular: rand.NewZipf(random, skew, 1, uint64(s.Keys-1))}
	if err := v.seed(s.Keys); err != nil {
		return err
	}
	err = record.Lookups(db, filepath.Join(s.Dir, "trace"), func() error {
		for range s.Ops * 4 / 5 {
			if err := v.visit(random.IntN(100)); err != nil {
				return err
			}
		}
		for range s.Ops / 5 {
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
