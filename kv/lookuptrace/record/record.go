// Package record makes lookup traces of loads, for programs that are written to make one:
//
//	err := record.Lookups(db, "app.trace", load)
package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/kv/metrics"
)

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
