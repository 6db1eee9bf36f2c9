package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// record writes the lookups of a load down.
func record(db *kv.DB, path string, load func() error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tracer, err := lookuptrace.New(f, &lookuptrace.Options{Keys: true})
	if err != nil {
		return err
	}
	db.TraceLookups(tracer)
	err = load()
	db.TraceLookups(nil)
	err = errors.Join(err, tracer.Close())
	if n := tracer.Stats().Dropped; err == nil && n > 0 {
		err = fmt.Errorf("the trace lacks %d lookups: the disk is too slow for it", n)
	}
	return err
}

// settle writes out what is in memory and waits until compactions have nothing to do, so that the tree depends less
// on how fast the machine is.
func settle(db *kv.DB) error {
	if err := db.Flush(context.Background()); err != nil {
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
		time.Sleep(10 * time.Millisecond)
	}
}
