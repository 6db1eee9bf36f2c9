package readamp

import (
	"context"
	"fmt"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// Seeds of the random orders in which keys are asked for are the run's seed XOR
// one of these, so that no pass repeats the order of another.
const (
	warmupOrder     = 0x7761726d
	throughputOrder = 0x74687275
	latencyOrder    = 0x6c617465
	budgetOrder     = 0x62756467
)

// latencyLookups is how many lookups are timed one by one for each n timed as
// one loop.
func latencyLookups(n int) int { return max(1, n/4) }

// streams are the lookups of one pass, the same for every row.
type streams map[engine.Kind]*measure.Stream

// draw makes the n-th pass of an order, size lookups of each kind.
func (x *experiment) draw(order uint64, n, size int) streams {
	s := streams{}
	for _, kind := range engine.Kinds {
		s[kind] = measure.NewStream(x.source, x.values, kind, keys.Mix(x.config.Seed^order), n*size, size)
	}
	return s
}

// measure warms every row up and then visits all of them in each repetition,
// beginning with another one each time so that none always follows the same.
func (x *experiment) measure(ctx context.Context) error {
	c := x.config
	warmup := x.draw(warmupOrder, 0, c.Lookups)
	phase := c.Progress.Start("warm up", 2*c.Lookups*len(x.rows), "lookups")
	for _, row := range x.rows {
		for _, kind := range engine.Kinds {
			if _, err := measure.Throughput(ctx, row.readers[kind], warmup[kind]); err != nil {
				return fmt.Errorf("%s: %w", row.plan.name, err)
			}
			phase.Add(c.Lookups)
		}
	}
	phase.Done()
	for rep := range c.Repetitions {
		if err := x.repeat(ctx, rep); err != nil {
			return err
		}
	}
	return nil
}

// repeat is one repetition.
func (x *experiment) repeat(ctx context.Context, rep int) error {
	c := x.config
	timed := x.draw(throughputOrder, rep, c.Lookups)
	single := x.draw(latencyOrder, rep, latencyLookups(c.Lookups))
	perRow := 2 * (c.Lookups + latencyLookups(c.Lookups))
	phase := c.Progress.Start(fmt.Sprintf("repetition %d of %d", rep+1, c.Repetitions), perRow*len(x.rows), "lookups")
	for i := range x.rows {
		row := x.rows[(i+rep)%len(x.rows)]
		for _, kind := range engine.Kinds {
			if err := row.visit(ctx, timed[kind], single[kind]); err != nil {
				return fmt.Errorf("%s: %w", row.plan.name, err)
			}
		}
		phase.Add(perRow)
	}
	phase.Done()
	return nil
}

// visit times one loop with its counters, then single lookups.
func (r *openRow) visit(ctx context.Context, timed, single *measure.Stream) error {
	kind := timed.Kind()
	rep, err := measure.Visit(ctx, r.readers[kind], timed)
	if err != nil {
		return err
	}
	r.reps[kind] = append(r.reps[kind], rep)
	return measure.Latency(ctx, r.readers[kind], single, r.latency[kind])
}
