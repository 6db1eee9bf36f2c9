package cell

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// A Pace is how a trace was replayed with its intervals.
type Pace struct {
	Speed   float64 `json:"speed"`     // times the recorded one
	Span    int64   `json:"span_ns"`   // of one replay: when its last lookup was due
	Lookups int     `json:"lookups"`   // of one replay, of both kinds
	Latest  int64   `json:"latest_ns"` // how late the lookup began that began latest, of all replays
}

// A schedule is what is asked in one paced replay.
type schedule struct {
	speed float64
	span  time.Duration       // at that speed
	n     map[engine.Kind]int // lookups of each kind, from the first on
}

// schedule returns what a paced replay asks: the trace until one of the kinds has as
// many lookups as the settings allow.
func (x *run) schedule() schedule {
	speed, _ := x.settings.speed() // it was checked
	t := x.source.(*keys.Trace)
	horizon := t.Describe().Replay.Span
	for _, kind := range engine.Kinds {
		if due := t.Due(kind == engine.Existing); len(due) > int(x.settings.Lookups) {
			horizon = min(horizon, due[x.settings.Lookups-1])
		}
	}
	s := schedule{speed: speed, n: map[engine.Kind]int{}}
	for _, kind := range engine.Kinds {
		due := t.Due(kind == engine.Existing)
		n := min(int(x.settings.Lookups), sort.Search(len(due), func(i int) bool { return due[i] > horizon }))
		s.n[kind] = n
		if n > 0 {
			s.span = max(s.span, scaled(due[n-1], speed))
		}
	}
	return s
}

// scaled returns when something is due at a speed.
func scaled(at time.Duration, speed float64) time.Duration { return time.Duration(float64(at) / speed) }

// lanes returns the lookups of one worker in a paced replay.
func (x *run) lanes(s schedule, worker int) []measure.Lane {
	t, workers := x.source.(*keys.Trace), int(x.settings.Threads)
	var lanes []measure.Lane
	for _, kind := range engine.Kinds {
		due := measure.Turns(t.Due(kind == engine.Existing)[:s.n[kind]], worker, workers)
		for i := range due {
			due[i] = scaled(due[i], s.speed)
		}
		lanes = append(lanes, measure.Lane{
			Reader: x.readers[kind][worker], Due: due,
			Stream:  measure.NewReplayStream(t, x.values, kind, s.n[kind], worker, workers),
			Latency: measure.NewHistogram(), Service: measure.NewHistogram(),
		})
	}
	return lanes
}

// replay replays the trace with its intervals, once per repetition, and adds the latencies
// to those of the kinds.
func (x *run) replay(ctx context.Context) error {
	s := x.schedule()
	p := &Pace{Speed: s.speed, Span: int64(s.span)}
	x.pace = p
	for _, n := range s.n {
		p.Lookups += n
	}
	reps := int(x.settings.Reps)
	phase := x.phase(fmt.Sprintf("replay over %s", s.span.Round(time.Millisecond)), reps*p.Lookups, "lookups")
	for range reps {
		if err := x.dropCaches(); err != nil {
			return err
		}
		late := make([]time.Duration, x.settings.Threads)
		lanes := make([][]measure.Lane, x.settings.Threads)
		for w := range lanes {
			lanes[w] = x.lanes(s, w)
		}
		start := time.Now()
		if err := measure.Together(ctx, len(lanes), func(ctx context.Context, w int) (err error) {
			late[w], err = measure.Paced(ctx, start, lanes[w])
			return err
		}); err != nil {
			return err
		}
		for w := range lanes {
			p.Latest = max(p.Latest, int64(late[w]))
			for i, kind := range engine.Kinds {
				x.passes[kind].histogram.Merge(lanes[w][i].Latency)
				x.passes[kind].service.Merge(lanes[w][i].Service)
			}
		}
		phase.Add(p.Lookups)
	}
	phase.Done()
	return nil
}

// note says what the latencies of a paced replay are.
func (p *Pace) note() string {
	return fmt.Sprintf("Percentiles are of a replay with the recorded intervals at %g times the speed: both kinds "+
		"together, %d lookups over %s, each counted from when it was due. Counters and ns/op are of the loops.",
		p.Speed, p.Lookups, time.Duration(p.Span).Round(time.Microsecond))
}

// warning tells of an engine that did not keep up, "" if it did or there was no pace.
func (p *Pace) warning() string {
	const slack = 10 * time.Millisecond // a busy machine is that late now and then
	if p == nil || time.Duration(p.Latest) <= max(slack, time.Duration(p.Span/20)) {
		return ""
	}
	return fmt.Sprintf("a lookup began %s late: the pace was more than the engine or the machine could keep, "+
		"at least for a while", time.Duration(p.Latest).Round(time.Microsecond))
}
