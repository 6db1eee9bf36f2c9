package term

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/siftkv/siftkv/examples/guard/internal/load"
	"github.com/siftkv/siftkv/examples/guard/internal/meter"
	"github.com/siftkv/siftkv/examples/guard/internal/stats"
)

// An Attack is one attack on a service that is played twice: without the filter of users,
// and with it.
type Attack struct {
	Out      io.Writer
	Counters func() stats.Snapshot // of the service
	// Load is what is played; For is the time of both halves together. Scenario is ignored.
	Load   load.Config
	Filter func(on bool) // turns the filter off, and on again
}

// trial is one half of an attack.
type trial struct {
	name   string
	filter bool
	report load.Report
	last   meter.Sample
}

// Run plays an attack, shows it, and compares its halves. If Load.EmptyCache is set, each begins
// with an empty cache, and both send the same requests; else each has a seed of its own, lest
// nulls that the cache keeps of one help the other. The filter is on when Run returns. The error
// wraps load.ErrWrong if there were wrong answers.
func (a Attack) Run(ctx context.Context) error {
	s := newScreen(a.Out)
	trials := []*trial{{name: "bare", filter: false}, {name: "guarded", filter: true}}
	defer a.Filter(true)
	a.Load.Seed = cmp.Or(a.Load.Seed, rand.Uint64())
	var wrong []error
	for i, t := range trials {
		config := a.Load
		config.Scenario = load.Attack
		config.For = a.Load.For / 2
		if config.EmptyCache == nil {
			config.Seed += uint64(i)
		} else if err := config.EmptyCache(ctx); err != nil {
			return fmt.Errorf("term: empty the cache: %w", err)
		}
		a.Filter(t.filter)
		var err error
		title := map[bool]string{false: "attack, filter off", true: "attack, filter on"}[t.filter]
		t.report, t.last, err = s.play(ctx, title, meter.New(a.Counters), config)
		if err != nil && !errors.Is(err, load.ErrWrong) {
			return err
		}
		wrong = append(wrong, err)
		if ctx.Err() != nil {
			return errors.Join(wrong...)
		}
	}
	s.print(compare(trials[0], trials[1]))
	return errors.Join(wrong...)
}

// compare is the table of two trials.
func compare(trials ...*trial) string {
	header := []string{"the same attack"}
	for _, t := range trials {
		header = append(header, t.name)
	}
	var rows [][]string
	line := func(name string, cell func(t *trial) string) {
		r := []string{name}
		for _, t := range trials {
			r = append(r, cell(t))
		}
		rows = append(rows, r)
	}
	each := func(name string, of func(f meter.Figures) float64) {
		line(name, func(t *trial) string { return count(of(t.last.Total)) })
	}
	line("database queries per 10,000 distinct absent keys", func(t *trial) string {
		return ratio(t.last.PerTenThousand)
	})
	each("absent keys", func(f meter.Figures) float64 { return f.Absent })
	each("asked: filter", func(f meter.Figures) float64 { return f.Filter })
	each("asked: cache", func(f meter.Figures) float64 { return f.Cache })
	each("asked: database", func(f meter.Figures) float64 { return f.Queries })
	each("refused: queue full", func(f meter.Figures) float64 { return f.Shed })
	line("requests a second", func(t *trial) string { return count(t.report.PerSecond()) })
	line("visitors never served", func(t *trial) string { return count(float64(t.report.Late)) })
	line("users' requests", func(t *trial) string { return count(float64(t.report.Users.Requests)) })
	line("  they wait: p50", func(t *trial) string { return wait(t.report.Users.Latency.P50) })
	line("  they wait: p99", func(t *trial) string { return wait(t.report.Users.Latency.P99) })
	line("  they wait: max", func(t *trial) string { return wait(t.report.Users.Latency.Max) })
	line("  failed", func(t *trial) string { return count(float64(t.report.Users.Failed)) })
	line("wrong answers", func(t *trial) string { return count(float64(t.report.Everyone.Wrong)) })
	return grid(header, rows, false)
}
