// Demo writes keys into a store of Pebble whose tables have filters of this project, and looks up absent keys.
//
//	go run ./filterpolicy/pebblefilter/internal/demo DIR
package main

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: demo DIR")
	}
	answered, err := run(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d lookups of absent keys: filters answered %d\n", keys, answered)
}

const keys = 20_000

// run returns how many lookups of absent keys a filter has answered.
func run(dir string) (answered int64, err error) {
	policy, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		return 0, err
	}
	opts := &pebble.Options{ErrorIfExists: true} // tables of another run would be asked too
	opts.EnsureDefaults()
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = pebblefilter.New(policy)
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for i := range keys + 1 {
		if err := db.Set(fmt.Appendf(nil, "%06d", 2*i), []byte("value"), pebble.NoSync); err != nil {
			return 0, err
		}
	}
	if err := db.Flush(); err != nil {
		return 0, err
	}
	for i := range keys {
		if _, _, err := db.Get(fmt.Appendf(nil, "%06d", 2*i+1)); !errors.Is(err, pebble.ErrNotFound) {
			return 0, fmt.Errorf("get of an absent key: %w", err)
		}
	}
	return db.Metrics().Filter.Hits, nil
}
