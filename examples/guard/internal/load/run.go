package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Run plays the scenario until its time is over or the context ends, which is no error,
// and reports. Visitors who are under way then leave when they are done. The error
// wraps ErrWrong if answers were not true. Run may be called once.
func (l *Load) Run(ctx context.Context) (Report, error) {
	started := false
	l.once.Do(func() { started = true })
	if !started {
		return Report{}, fmt.Errorf("%w: a load runs once; make another", ErrConfig)
	}
	if l.config.Scenario == Cold && l.config.EmptyCache != nil {
		if err := l.config.EmptyCache(ctx); err != nil {
			return Report{}, fmt.Errorf("load: empty the cache: %w", err)
		}
	}
	start := time.Now()
	l.played.Store(&span{start: start})
	var workers sync.WaitGroup
	for range l.config.Workers {
		workers.Go(func() { l.work(ctx, start) })
	}
	workers.Wait()
	end := time.Now()
	l.played.Store(&span{start: start, end: end})
	if ctx.Err() == nil {
		l.late.Store(l.missed())
	}
	r := l.Report()
	return r, r.Err()
}

// Report returns the figures so far. It may be called at any time, by anyone.
func (l *Load) Report() Report {
	r := Report{Scenario: l.config.Scenario, Late: l.late.Load()}
	if s := l.played.Load(); s != nil {
		end := s.end
		if end.IsZero() {
			end = time.Now()
		}
		r.Seconds = end.Sub(s.start).Seconds()
	}
	l.tally.fill(&r)
	return r
}

// work serves one visitor after another.
func (l *Load) work(ctx context.Context, start time.Time) {
	for {
		i := l.next.Add(1) - 1
		due, ok := l.due(ctx, start, i)
		if !ok {
			return
		}
		l.served.Add(1)
		// A visitor who has come is served: the end of the load is none of the service's business.
		l.client.serve(context.WithoutCancel(ctx), l.plan.visit(i), due)
	}
}

// due waits until visitor i is due and returns when that was. It is not ok to serve one
// when the time is over, even if the visitor was due before.
func (l *Load) due(ctx context.Context, start time.Time, i uint64) (due time.Time, ok bool) {
	end := start.Add(l.config.For)
	if l.config.For == 0 {
		end = start.AddDate(1, 0, 0)
	}
	due = time.Now()
	if !l.config.Unpaced {
		due = start.Add(time.Duration(float64(i) / l.config.Rate * float64(time.Second)))
		sleepUntil(ctx, due, end)
	}
	return due, due.Before(end) && time.Now().Before(end) && ctx.Err() == nil
}

// sleepUntil waits for the first of two moments, or for the end of the context.
func sleepUntil(ctx context.Context, due, end time.Time) {
	wait := min(time.Until(due), time.Until(end))
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// missed returns how many visitors were due within the time and not served.
func (l *Load) missed() uint64 {
	if l.config.Unpaced {
		return 0
	}
	due := uint64(l.config.Rate * l.config.For.Seconds())
	return due - min(due, l.served.Load())
}
