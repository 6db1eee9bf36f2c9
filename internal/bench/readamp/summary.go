package readamp

import (
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// summarise turns repetitions into a phase. distinct is the part of all draws
// that asked for a key for the first time.
func summarise(reps []Repetition, h *hdrhistogram.Histogram, distinct float64) Phase {
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
	p.NsPerLookup = measure.Median(times)
	p.FPR = falsePositiveRate(p.Counters.Total, distinct)
	p.Latency = Latency{
		Lookups: h.TotalCount(),
		P50:     h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90),
		P99: h.ValueAtPercentile(99), P999: h.ValueAtPercentile(99.9), Max: h.Max(),
	}
	return p
}

// falsePositiveRate returns nil if it cannot be told or nothing was tried. A key
// asked for twice gives the same answer twice, so the interval is that of the
// distinct keys only.
func falsePositiveRate(t engine.Tally, distinct float64) *Rate {
	trials := t.FalsePositives.Plus(t.Negatives)
	if trials <= 0 {
		return nil
	}
	r := &Rate{Trials: int64(trials), Value: float64(t.FalsePositives) / float64(trials)}
	r.Distinct = int64(math.Round(float64(trials) * distinct))
	r.Low, r.High = measure.Wilson(r.Value, float64(r.Distinct))
	return r
}

// compare relates every row to the baseline: Pebble's Get with its own filter,
// or with none if that was not measured.
func compare(rows []Row) []Comparison {
	var base *Row
	for _, filter := range []string{pebbleOwn, "none"} {
		at := slices.IndexFunc(rows, func(r Row) bool {
			return r.Engine == "pebble" && r.Access == engine.Get && r.Filter == filter
		})
		if at >= 0 {
			base = &rows[at]
			break
		}
	}
	if base == nil {
		return nil
	}
	var out []Comparison
	for _, kind := range engine.Kinds {
		for i := range rows {
			if &rows[i] != base && rows[i].Engine != Null {
				out = append(out, speedup(&rows[i], base, kind))
			}
		}
	}
	return out
}

// speedup compares medians, and repetition with repetition for the spread: the
// loops of one repetition ran within seconds of each other.
func speedup(row, base *Row, kind engine.Kind) Comparison {
	p, b := row.Phase(kind), base.Phase(kind)
	c := Comparison{
		Kind: kind, Row: row.Name, Baseline: base.Name, BaselineNs: b.NsPerLookup,
		Speedup: b.NsPerLookup / p.NsPerLookup,
		Low:     math.Inf(1),
	}
	for i := range min(len(p.Repetitions), len(b.Repetitions)) {
		quotient := b.Repetitions[i].NsPerLookup() / p.Repetitions[i].NsPerLookup()
		c.Low, c.High = min(c.Low, quotient), max(c.High, quotient)
	}
	return c
}
