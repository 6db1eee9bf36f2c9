// Package record makes lookup traces of loads, for programs that are written to make one:
//
//	err := record.Lookups(db, "app.trace", load)
package record

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/kv/metrics"
)

// A Load says how large a load is, and where its store and its trace go.
type Load struct {
	Keys, Ops int
	Seed      uint64 // of all that is drawn
	Dir       string // DIR/store is the store, DIR/trace the trace; it is not there yet
}

// Main is the main function of a program that makes a store and a trace: [--keys N] [--ops N] [--seed N] DIR. Keys and
// ops say what these flags count, and l has their defaults.
func Main(l Load, keys, ops string, run func(context.Context, Load) error) {
	flag.IntVar(&l.Keys, "keys", l.Keys, keys)
	flag.IntVar(&l.Ops, "ops", l.Ops, ops)
	flag.Uint64Var(&l.Seed, "seed", 1, "of all that is drawn")
	flag.Parse()
	l.Dir = flag.Arg(0)
	name := filepath.Base(os.Args[0])
	if flag.NArg() != 1 || l.Keys < 100 || l.Ops < 1 {
		fmt.Fprintf(os.Stderr, "usage: %s [--keys 100 or more] [--ops N] [--seed N] DIR\n", name)
		os.Exit(2)
	}
	if err := run(context.Background(), l); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Lookups writes what a load looks up in a store to a new file, with keys. The store is a *kv.DB. A lookup that is not
// in the trace, since the disk was too slow for it, is an error.
func Lookups(db interface{ TraceLookups(t *lookuptrace.Tracer) }, path string, load func() error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := lookuptrace.New(f, &lookuptrace.Options{Keys: true})
	if err != nil {
		return err
	}
	db.TraceLookups(t)
	err = load()
	db.TraceLookups(nil)
	err = errors.Join(err, t.Close())
	if n := t.Stats().Dropped; err == nil && n > 0 {
		err = fmt.Errorf("the trace lacks %d lookups: record fewer, or write it to a faster disk", n)
	}
	return err
}

// Settle flushes a store and waits until it needs no compaction. The files that a trace is replayed on then depend less
// on how fast the machine is.
func Settle(ctx context.Context, db interface {
	Flush(ctx context.Context) error
	Metrics() *metrics.Store
}) error {
	if err := db.Flush(ctx); err != nil {
		return err
	}
	for {
		m := db.Metrics()
		switch {
		case m.FailedCompactions > 0:
			return errors.New("compactions fail")
		case m.CompactionDebt == 0 && m.RunningCompactions == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
