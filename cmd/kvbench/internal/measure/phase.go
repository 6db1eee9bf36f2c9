package measure

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A Theory is what a filter should cost and how often it should err.
type Theory struct {
	BitsPerKey float64 `json:"bits_per_key"`
	FPR        float64 `json:"fpr"`
}

// A Phase is what lookups of one kind did in one row.
type Phase struct {
	NsPerLookup float64         `json:"ns_per_lookup"` // median of the repetitions
	Latency     Percentiles     `json:"latency"`
	Lookups     int             `json:"lookups"`  // that Counters are of
	Counters    engine.Counters `json:"counters"` // sum of the repetitions
	FPR         *Rate           `json:"fpr"`      // null if no filter said no or erred
	Repetitions []Repetition    `json:"repetitions"`
}

// Percentiles holds percentiles of single lookups in nanoseconds, each with one
// reading of the clock in it.
type Percentiles struct {
	Lookups int64 `json:"lookups"`
	P50     int64 `json:"p50_ns"`
	P90     int64 `json:"p90_ns"`
	P99     int64 `json:"p99_ns"`
	P999    int64 `json:"p999_ns"`
	P9999   int64 `json:"p9999_ns"`
	Max     int64 `json:"max_ns"`
}

// A Rate is a measured false-positive rate: false positives over false
// positives and negatives, with its 95 % Wilson interval.
type Rate struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Trials int64   `json:"trials"` // false positives + negatives
	// trials with keys of their own that would tell as much, which the interval is for
	Distinct int64 `json:"distinct"`
}

// A Repetition is one timed loop, or those of several workers at once.
type Repetition struct {
	Lookups int   `json:"lookups"`
	Nanos   int64 `json:"nanos"` // wall times of the loops, added up
	// of several workers: from when the first began until the last was done
	Wall     int64           `json:"wall_nanos,omitempty"`
	Counters engine.Counters `json:"counters"`
}

// NsPerLookup returns the mean time of a lookup, as its worker sees it.
func (r Repetition) NsPerLookup() float64 { return float64(r.Nanos) / float64(r.Lookups) }

// PerSecond returns how many lookups were done in a second by all workers.
func (r Repetition) PerSecond() float64 {
	wall := r.Wall
	if wall == 0 {
		wall = r.Nanos
	}
	return float64(r.Lookups) / time.Duration(max(1, wall)).Seconds() // a coarse clock may not have moved
}

// Summarise turns repetitions into a phase. distinct is the part of all draws that
// tell something new of a rate, since a key gets the same answer each time.
func Summarise(reps []Repetition, h *hdrhistogram.Histogram, distinct float64) Phase {
	p := Phase{Repetitions: reps}
	times := make([]float64, len(reps))
	for i, r := range reps {
		times[i] = r.NsPerLookup()
		p.Lookups += r.Lookups
		if i == 0 {
			p.Counters = r.Counters
		} else {
			p.Counters = p.Counters.Plus(r.Counters)
		}
	}
	p.NsPerLookup = Median(times)
	p.FPR = FalsePositiveRate(p.Counters.Total, distinct)
	p.Latency = LatencyOf(h)
	return p
}

// LatencyOf returns the percentiles of a histogram of nanoseconds.
func LatencyOf(h *hdrhistogram.Histogram) Percentiles {
	return Percentiles{
		Lookups: h.TotalCount(),
		P50:     h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90),
		P99: h.ValueAtPercentile(99), P999: h.ValueAtPercentile(99.9),
		P9999: h.ValueAtPercentile(99.99), Max: h.Max(),
	}
}

// FalsePositiveRate returns the rate of the filters that counters tell, false positives that were remembered
// included; nil if it cannot be told or nothing was tried. A key
// asked for twice gives the same answer twice, so the interval is that of the part
// of the trials that is distinct.
func FalsePositiveRate(t engine.Tally, distinct float64) *Rate {
	wrong := t.FalsePositives.Plus(t.Remembered)
	trials := wrong.Plus(t.Negatives)
	if trials <= 0 {
		return nil
	}
	return newRate(wrong, trials, distinct)
}

// newRate returns the rate of so many errors in trials of which the part that is distinct
// tells something new.
func newRate(errors, trials engine.Count, distinct float64) *Rate {
	r := &Rate{Trials: int64(trials), Value: float64(errors) / float64(trials)}
	r.Distinct = int64(math.Round(float64(trials) * distinct))
	r.Low, r.High = Wilson(r.Value, float64(r.Distinct))
	return r
}

// A gate lets workers through once all of them are there, and running: a short loop must
// not be over before another worker has found a processor.
type gate struct {
	missing atomic.Int64
	yield   bool // there are more workers than processors
}

func newGate(workers int) *gate {
	g := &gate{yield: workers > runtime.GOMAXPROCS(0)}
	g.missing.Store(int64(workers))
	return g
}

// pass waits for the others. It keeps its processor if there is one for each: a worker that
// gave it away would be continued on it after the one it waited for, and not beside.
func (g *gate) pass() {
	for g.missing.Add(-1); g.missing.Load() > 0; {
		if g.yield {
			runtime.Gosched()
		}
	}
}

// VisitAll times a loop of workers at once, each with a reader and a stream of its own, with the
// counters of all. Garbage of others is collected before, so that a row pays for its own only.
func VisitAll(ctx context.Context, readers []engine.Reader, timed []*Stream) (Repetition, error) {
	runtime.GC()
	before, err := readers[0].Counters()
	if err != nil {
		return Repetition{}, err
	}
	took, starts, ends := make([]time.Duration, len(readers)), make([]time.Time, len(readers)),
		make([]time.Time, len(readers))
	g := newGate(len(readers))
	err = Together(ctx, len(readers), func(ctx context.Context, i int) (err error) {
		g.pass()
		starts[i] = time.Now()
		took[i], err = Throughput(ctx, readers[i], timed[i])
		ends[i] = time.Now()
		return err
	})
	if err != nil {
		return Repetition{}, err
	}
	after, err := readers[0].Counters()
	if err != nil {
		return Repetition{}, err
	}
	rep := Repetition{Counters: after.Minus(before)}
	for i, s := range timed {
		rep.Lookups += s.Len()
		rep.Nanos += took[i].Nanoseconds()
	}
	if len(readers) > 1 {
		rep.Wall = slices.MaxFunc(ends, time.Time.Compare).Sub(slices.MinFunc(starts, time.Time.Compare)).Nanoseconds()
	}
	return rep, nil
}
