package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// A Row is a cell that is measured in turn with others, which have the same keys, values,
// lookups and repetitions, and a warm cache.
type Row struct {
	Name     string // in reports, errors and progress; the first one of a store is the store's
	Settings Settings
}

// Interleave measures rows in turns: it builds all stores, warms every row up, and then
// visits all of them in each repetition, beginning with another one each time so that none
// always follows the same. So the rows of one repetition follow each other closely, and a slow
// minute of the machine hits all of them. Every row is asked exactly the same. A row with Spread gets
// a budget of the filter bytes of the row before it, if the two differ only in Spread.
//
// The environment is that before the lab's first rows: later ones would report the load of those.
func (l *Lab) Interleave(ctx context.Context, source keys.Source, rows []Row) (out []*Result, err error) {
	var runs []*run
	defer func() { err = errors.Join(err, closeAll(runs)) }()
	start := time.Now()
	if l.before == nil {
		l.before = new(l.conditions())
	}
	for _, row := range rows {
		x, err := l.newRun(row.Settings, *l.before)
		if err == nil {
			x.name, x.store, x.title, x.orders, x.source = row.Name, row.Name, row.Name, inTurns, source
			if n := len(runs); n > 0 {
				x.budget = runs[n-1].memoryFor(x)
			}
			runs = append(runs, x)
			err = x.share(ctx, runs)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Name, err)
		}
	}
	if err := l.warmUp(ctx, runs); err != nil {
		return nil, err
	}
	for rep := range int(runs[0].settings.Reps) {
		if err := l.turn(ctx, runs, rep); err != nil {
			return nil, err
		}
	}
	for _, x := range runs {
		r, err := x.result()
		if err != nil {
			return nil, err
		}
		r.WallSeconds = time.Since(start).Seconds() / float64(len(runs)) // its part
		out = append(out, r)
	}
	return out, nil
}

// memoryFor returns the bytes of the filters, if other differs in Spread alone.
func (x *run) memoryFor(other *run) int64 {
	s := x.settings
	if s.Budget == Spread {
		return 0
	}
	if s.Budget = Spread; s != other.settings {
		return 0
	}
	return x.built.shape.Total().FilterBytes
}

// share opens the readers of a row on the store that a row before it has built, or on one of
// its own.
func (x *run) share(ctx context.Context, runs []*run) error {
	for _, other := range runs[:len(runs)-1] {
		if other.built.text == x.settings.BuildText() {
			x.built = other.built
			return x.openReaders()
		}
	}
	if err := x.checkWorkload(); err != nil {
		return err
	}
	if err := x.build(ctx); err != nil {
		return err
	}
	return x.reopen()
}

// warmUp warms every row up.
func (l *Lab) warmUp(ctx context.Context, runs []*run) error {
	asked, n := runs[0].askBoth(inTurns.warmup, 0)
	phase := l.Progress.Start("warm up", n*len(runs), "lookups")
	for _, x := range runs {
		for _, kind := range engine.Kinds {
			if err := x.throughput(ctx, kind, asked[kind]); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		phase.Add(n)
	}
	phase.Done()
	return nil
}

// turn is one repetition of every row.
func (l *Lab) turn(ctx context.Context, runs []*run, rep int) error {
	timed, n := runs[0].askBoth(inTurns.timed, rep)
	single, m := runs[0].askBoth(inTurns.single, rep)
	n += m
	phase := l.Progress.Start(fmt.Sprintf("repetition %d of %d", rep+1, runs[0].settings.Reps), n*len(runs), "lookups")
	for i := range runs {
		x := runs[(i+rep)%len(runs)]
		for _, kind := range engine.Kinds {
			if err := x.repeat(ctx, kind, timed[kind], single[kind]); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		phase.Add(n)
	}
	phase.Done()
	return nil
}

// closeAll closes the readers of all runs, then their stores.
func closeAll(runs []*run) error {
	var errs []error
	for _, x := range runs {
		errs = append(errs, x.closeReaders())
	}
	for _, x := range runs {
		errs = append(errs, x.built.close())
	}
	return errors.Join(errs...)
}
