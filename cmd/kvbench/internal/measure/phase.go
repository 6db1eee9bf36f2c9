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
	"github.com/siftkv/siftkv/filterpolicy"
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
			p.Counters = engine.Plus(p.Counters, r.Counters)
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
	rep := Repetition{Counters: engine.Minus(after, before)}
	for i, s := range timed {
		rep.Lookups += s.Len()
		rep.Nanos += took[i].Nanoseconds()
	}
	if len(readers) > 1 {
		rep.Wall = slices.MaxFunc(ends, time.Time.Compare).Sub(slices.MinFunc(starts, time.Time.Compare)).Nanoseconds()
	}
	return rep, nil
}

// maxLatency bounds what a histogram can hold, in nanoseconds; longer lookups
// count as this long.
const maxLatency = int64(60 * time.Second)

// NewHistogram returns a histogram of nanoseconds, 1 ns to one minute, that
// keeps three significant digits.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

// Median returns the median of xs, the mean of the middle two if their number
// is even; NaN if there are none.
func Median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// z95 is the 97.5 % quantile of the standard normal distribution.
const z95 = 1.959963984540054

// Wilson returns the 95 % score interval of a proportion p seen in n trials (E.
// B. Wilson, "Probable inference, the law of succession, and statistical
// inference", JASA 22, 1927). Unlike p +- z*sigma it stays within [0, 1] and is
// right for small p. Without trials it is [0, 1].
func Wilson(p, n float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	z2 := z95 * z95
	middle := p + z2/(2*n)
	spread := z95 * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	scale := 1 + z2/n
	return max(0, (middle-spread)/scale), min(1, (middle+spread)/scale)
}

// TimerCost returns the median time between two readings of the clock: the part
// of every single-lookup latency that is not the lookup's.
func TimerCost() time.Duration {
	const readings = 2001
	gaps := make([]float64, readings)
	for i := range gaps {
		start := time.Now()
		gaps[i] = float64(time.Since(start))
	}
	return time.Duration(Median(gaps))
}

// A LevelRate sets the prediction for one level's filters against what they did.
type LevelRate struct {
	Level int `json:"level"`
	// sorted runs, of each of which a lookup may have to ask a file; in level 0 each flush is one
	Runs       int     `json:"runs"`
	Keys       int64   `json:"keys"`
	BitsPerKey float64 `json:"bits_per_key"`
	Predicted  float64 `json:"predicted"` // rate of one probe, the mean over the runs
	Measured   *Rate   `json:"measured"`  // likewise, over all probes; null if no lookup came to the level
}

// A Sum is a sum of false-positive rates over the runs of a tree: the files that an
// absent key leads to in vain, if it lies within the bounds of every run. It is not
// a probability, and may exceed 1.
type Sum struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"` // 95 % interval
	High  float64 `json:"high"`
}

// LevelRates sets prediction against measurement for every level of a shape. The
// counters are those of lookups of absent keys, of which the part that is distinct tells
// something new: see Summarise. The policy is that of every file, or with a budget
// (spread) says the family. Runs of one level may have filters of different bits, and a
// lookup asks each: their rates are predicted one by one, since a rate is no linear
// function of the bits, and what is measured of all probes together is their mean, as
// each run is asked about as often as the next.
func LevelRates(shape engine.Shape, c engine.Counters, distinct float64, policy filterpolicy.Policy,
	spread bool) []LevelRate {
	predict := namedRate
	if spread {
		predict = fittedRate
	}
	var levels []LevelRate
	for _, l := range shape.Levels {
		level := LevelRate{Level: l.Level, Runs: l.Runs, Keys: l.Entries, BitsPerKey: l.BitsPerKey()}
		runs := shape.RunsOf(l)
		for _, run := range runs {
			level.Predicted += predict(policy, run) / float64(len(runs))
		}
		if l.Level < len(c.Levels) {
			level.Measured = passRate(c.Levels[l.Level], distinct)
		}
		levels = append(levels, level)
	}
	return levels
}

// namedRate returns what theory says of a level's filters if each has the bits that
// the policy names. Without filters it is 1.
func namedRate(policy filterpolicy.Policy, l engine.LevelShape) float64 {
	if l.FilterBytes == 0 || l.Files == 0 {
		return 1
	}
	return filterpolicy.Expected(policy, int(l.Entries)/l.Files).FPR
}

// fittedRate returns what theory says of a level's filters from their family and the
// bits that they take. It is good for a family whose bits can be chosen freely, such
// as bloom, and coarse for one that has whole bits only. Without filters it is 1.
func fittedRate(family filterpolicy.Policy, l engine.LevelShape) float64 {
	if l.FilterBytes == 0 || l.Files == 0 {
		return 1
	}
	// A policy is named for the bits that its filters of many keys take. Those of few
	// keys take more (a footer, rounding): go from the bits taken to the bits named.
	want, bits := l.BitsPerKey(), l.BitsPerKey()
	rate, nearest := 1.0, math.Inf(1)
	for range 8 {
		p, ok := filterpolicy.WithBits(family, bits)
		if !ok {
			break
		}
		e := filterpolicy.Expected(p, int(l.Entries)/l.Files)
		over := e.BitsPerKey - want
		if math.Abs(over) < nearest {
			nearest, rate = math.Abs(over), e.FPR
		}
		bits -= over
	}
	return rate
}

// passRate returns the share of probes for absent keys that no filter stopped: false positives,
// remembered or not, and probes of files without a filter. It is nil if there were no
// probes. The interval is that of the part of the probes that is distinct.
func passRate(t engine.Tally, distinct float64) *Rate {
	trials := t.FilterChecks.Plus(t.Unfiltered)
	passed := t.IndexLookups.Plus(t.Remembered)
	if trials <= 0 || !passed.Known() {
		return nil
	}
	return newRate(passed, trials, distinct)
}

// SumRates adds up the rates of all runs. The interval of the measured sum is made
// of those of the levels: each end is as far from the sum as the root of the
// squared distances of theirs (G. Y. Zou and A. Donner, "Construction of confidence
// limits about effect measures: a general approach", Statistics in Medicine 27,
// 2008), which keeps the skew of rare events.
func SumRates(levels []LevelRate) (predicted float64, measured Sum) {
	below, above := 0.0, 0.0
	for _, l := range levels {
		runs := float64(l.Runs)
		predicted += runs * l.Predicted
		if l.Measured == nil {
			continue
		}
		measured.Value += runs * l.Measured.Value
		below = math.Hypot(below, runs*(l.Measured.Value-l.Measured.Low))
		above = math.Hypot(above, runs*(l.Measured.High-l.Measured.Value))
	}
	measured.Low, measured.High = measured.Value-below, measured.Value+above
	return predicted, measured
}
