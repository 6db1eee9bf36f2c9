package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/kv/lookuptrace"
	"github.com/siftkv/siftkv/kv/lookuptrace/record"
)

// A tracedStore writes its lookups down.
type tracedStore interface {
	TraceLookups(t *lookuptrace.Tracer)
}

// Make builds the store of a cell in a directory that is not there yet, and writes a trace of
// lookups in it, of existing and of absent keys in turns. The lab's directory and that one are on
// one file system.
func (l *Lab) Make(ctx context.Context, s Settings, dir, trace string) (err error) {
	if err := s.Check(); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return bench.Usagef("%s is there already", dir)
	}
	if s.Engine != "siftkv" || s.Filter == engine.OracleFilter || s.Threads != 1 {
		return bench.Usagef("a store with a trace is one of siftkv, with a filter of this project, and one worker")
	}
	x, err := l.newRun(s, l.conditions())
	if err != nil {
		return err
	}
	x.name, x.store, x.title = s.Name(), s.Name(), s.Engine+" "+s.Filter
	if x.source, err = s.Open(); err != nil {
		return err
	}
	if err := errors.Join(x.checkWorkload(), x.build(ctx)); err != nil {
		return err
	}
	if err := x.reopen(); err != nil {
		return err
	}
	if err := errors.Join(x.record(ctx, trace), x.close()); err != nil {
		return err
	}
	if err := os.Rename(x.built.dir, dir); err != nil {
		return fmt.Errorf("make a store: %w", err)
	}
	return nil
}

// record looks keys up and writes a trace of that.
func (x *run) record(ctx context.Context, path string) error {
	store, ok := x.built.store.(tracedStore)
	if !ok {
		return bench.Usagef("%s writes no traces", x.settings.Engine)
	}
	err := record.Lookups(store, path, func() error { return x.askInTurns(ctx) })
	if bad := new(fs.PathError); errors.As(err, &bad) && bad.Op == "open" && bad.Path == path {
		return bench.Usagef("make a trace: %w", err)
	}
	return err
}

// askInTurns looks up existing and absent keys in turns.
func (x *run) askInTurns(ctx context.Context) (err error) {
	both, total := x.askBoth(x.orders.timed, 0)
	phase := x.phase("look up", total, "lookups")
	var value []byte
	for i, more := 0, true; more && err == nil; i++ {
		if err = ctx.Err(); err != nil {
			break
		}
		more = false
		for _, kind := range engine.Kinds {
			if s := both[kind][0]; i < s.Len() {
				more = true
				if value, _, err = x.readers[kind][0].Get(value[:0], s.Key(i)); err != nil {
					break
				}
				phase.Add(1)
			}
		}
	}
	phase.Done()
	return err
}
