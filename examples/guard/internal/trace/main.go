// Command trace runs the service on a SiftKV store, and traces the lookups that its load comes to:
//
//	go run ./internal/trace [--keys N] [--ops N] [--seed N] DIR
//
// The store is DIR/store and the trace, which has the keys, DIR/trace; DIR is not there yet.
//
// The filters and the cache that the service has in Redis let everything through: those of the store are in their
// place, and see each question. Requests and answers are the service's, over HTTP; rows have more bytes than a name,
// as those of real users. Two loads of package load are played one after another, by one visitor at a time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/kv"

	"github.com/siftkv/siftkv/examples/guard/internal/api"
	"github.com/siftkv/siftkv/examples/guard/internal/load"
)

// settings are the command line.
type settings struct {
	keys, ops int
	seed      uint64
	dir       string
}

func main() {
	var s settings
	flag.IntVar(&s.keys, "keys", 300_000, "users before the load")
	flag.IntVar(&s.ops, "ops", 60_000, "requests, about")
	flag.Uint64Var(&s.seed, "seed", 1, "of all that is drawn but the identifiers of new users")
	flag.Parse()
	s.dir = flag.Arg(0)
	if flag.NArg() != 1 || s.keys < 100 || s.ops < 10 {
		fmt.Fprintln(os.Stderr, "usage: trace [--keys 100 or more] [--ops 10 or more] [--seed N] DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// run makes the store with the users, and records the load.
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
	if err := seed(db, s.keys, s.seed); err != nil {
		return err
	}
	err = record(db, filepath.Join(s.dir, "trace"), func() error {
		normal := load.Config{Scenario: load.Normal, Users: s.keys, Seed: s.seed}
		attack := load.Config{Scenario: load.Attack, Users: s.keys, Seed: s.seed}
		return errors.Join(play(ctx, db, normal, s.ops*4/5), play(ctx, db, attack, s.ops/5))
	})
	return errors.Join(err, settle(db))
}

// play serves the visitors of a load until they have made so many requests.
func play(ctx context.Context, db *kv.DB, l load.Config, requests int) error {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := api.New(newGuard(db), time.Minute)
	server := &http.Server{ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests--; requests == 0 { // there is one visitor at a time
			enough()
		}
		service.ServeHTTP(w, r)
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	l.Base, l.Workers, l.Unpaced, l.Timeout = "http://"+listener.Addr().String(), 1, true, time.Minute
	_, err = load.Run(ctx, l)
	err = errors.Join(err, server.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
