package cell

import (
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// StoreKind is the kind of metrics that are of the store and not of lookups.
const StoreKind = "store"

// What is better of something.
const (
	lower  = "lower"
	higher = "higher"
)

// metrics lists every number of a cell that can be compared, in the order of reports.
// What the engine does not count is left out.
func metrics(r *Result) []Metric {
	var out []Metric
	for _, kind := range engine.Kinds {
		out = append(out, phaseMetrics(kind, r.Phase(kind), r.Settings)...)
	}
	return append(append(out, scanMetrics(r)...), storeMetrics(r)...)
}

// phaseMetrics lists what lookups of one kind cost.
func phaseMetrics(kind engine.Kind, p *Phase, s Settings) []Metric {
	if p.Lookups == 0 {
		return nil // of a trace
	}
	samples, rates := make([]float64, len(p.Repetitions)), make([]float64, len(p.Repetitions))
	for i, rep := range p.Repetitions {
		samples[i], rates[i] = rep.NsPerLookup(), rep.PerSecond()
	}
	out := []Metric{
		{Kind: string(kind), Unit: "ns/op", Value: measure.Median(samples), Better: lower, Samples: samples},
		{Kind: string(kind), Unit: "lookups/s", Value: measure.Median(rates), Better: higher, Samples: rates},
	}
	if l := &p.Latency; l.Lookups > 0 { // a paced replay may end before the first of a kind
		out = append(out, latencyMetrics(kind, []percentile{
			{"p50-ns", l.P50}, {"p90-ns", l.P90}, {"p99-ns", l.P99}, {"p99.9-ns", l.P999}, {"p99.99-ns", l.P9999},
			{"max-ns", l.Max},
		})...)
	}
	if l := p.Service; l != nil && l.Lookups > 0 {
		out = append(out, latencyMetrics(kind, []percentile{{"service-p50-ns", l.P50}, {"service-p99-ns", l.P99}})...)
	}
	for _, c := range countMetrics {
		if count := c.of(&p.Counters.Total); count.Known() {
			out = append(out, p.countMetric(kind, c, s))
		}
	}
	useful := 0.0
	if kind == engine.Existing {
		useful = float64(s.ValueSize)
	}
	out = append(out, Metric{Kind: string(kind), Unit: "useful-bytes/op", Value: useful, Exact: true})
	if p.FPR != nil {
		out = append(out, Metric{Kind: string(kind), Unit: "fpr", Value: p.FPR.Value, Exact: true, Better: lower})
	}
	return out
}

// A percentile is one of latencies.
type percentile struct {
	unit  string
	nanos int64
}

// latencyMetrics lists percentiles, each of which is one number per cell.
func latencyMetrics(kind engine.Kind, of []percentile) []Metric {
	var out []Metric
	for _, q := range of {
		out = append(out, Metric{Kind: string(kind), Unit: q.unit, Value: float64(q.nanos), Better: lower,
			Samples: []float64{float64(q.nanos)}})
	}
	return out
}

// A countMetric is a count per lookup.
type countMetric struct {
	unit      string
	better    string
	cache     bool // it depends on what is in the cache at the moment
	remembers bool // it depends on which false positives are remembered
	of        func(t *engine.Tally) engine.Count
}

var countMetrics = []countMetric{
	{"files/op", lower, false, false, func(t *engine.Tally) engine.Count { return t.FilesConsidered }},
	{"out-of-bounds/op", "", false, false, func(t *engine.Tally) engine.Count { return t.OutOfBounds }},
	{"filter-checks/op", lower, false, false, func(t *engine.Tally) engine.Count { return t.FilterChecks }},
	{"negatives/op", "", false, false, func(t *engine.Tally) engine.Count { return t.Negatives }},
	{"true-positives/op", "", false, false, func(t *engine.Tally) engine.Count { return t.TruePositives }},
	{"false-positives/op", lower, false, true, func(t *engine.Tally) engine.Count { return t.FalsePositives }},
	{"remembered/op", "", false, true, func(t *engine.Tally) engine.Count { return t.Remembered }},
	{"unfiltered/op", lower, false, false, func(t *engine.Tally) engine.Count { return t.Unfiltered }},
	{"index/op", lower, false, true, func(t *engine.Tally) engine.Count { return t.IndexLookups }},
	{"blocks/op", lower, false, true, (*engine.Tally).Blocks},
	{"cached-blocks/op", "", true, true, func(t *engine.Tally) engine.Count { return t.BlocksFromCache }},
	{"disk-blocks/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.BlocksFromDisk }},
	{"disk-bytes/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.BytesFromDisk }},
	{"decoded-bytes/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.BytesDecoded }},
}

// countMetric returns a count per lookup. With several workers (shared), which of two finds a
// block in the cache, and whether both read it, is a matter of timing: what depends on
// it is no exact count, and has samples. Nor is what comes behind a memory of false positives,
// in which places are drawn by lot.
func (p *Phase) countMetric(kind engine.Kind, c countMetric, s Settings) Metric {
	m := Metric{Kind: string(kind), Unit: c.unit, Better: c.better, Exact: true}
	m.Value = float64(c.of(&p.Counters.Total)) / float64(p.Lookups)
	if s.Threads > 1 && (c.cache || c.unit == "blocks/op" && !p.countsBlocks()) || s.Remember > 0 && c.remembers {
		m.Exact = false
		for _, rep := range p.Repetitions {
			m.Samples = append(m.Samples, float64(c.of(&rep.Counters.Total))/float64(rep.Lookups))
		}
	}
	return m
}

// countsBlocks reports whether the blocks of lookups are data blocks, each counted
// once whether it was in the cache or not.
func (p *Phase) countsBlocks() bool {
	t := &p.Counters.Total
	// An engine that does not count index look-ups has blocks of indexes and filters among
	// these, and of leaves of indexes those from the cache are not counted.
	return t.IndexLookups.Known() && t.LeavesFromDisk <= 0
}

// CountsExactly reports whether a count by level, named as by engine.Tally.EachPair, is the
// same in two runs of the settings.
func (s *Settings) CountsExactly(count string) bool {
	behind := []string{"false positives", "remembered", "index lookups", "ruled out by index"}
	if s.Remember > 0 && slices.Contains(behind, count) {
		return false
	}
	return s.Threads <= 1 && s.Remember == 0 || !slices.Contains([]string{
		"blocks from cache", "blocks from disk", "index leaves from disk", "bytes from disk", "bytes decoded",
	}, count)
}

// storeMetrics lists what the store takes and took.
func storeMetrics(r *Result) []Metric {
	total := r.Shape.Total()
	if total.Files == 0 {
		return nil
	}
	exact := func(unit string, value float64) Metric {
		return Metric{Kind: StoreKind, Unit: unit, Value: value, Exact: true, Better: lower}
	}
	keys := float64(r.Keys.Present)
	out := []Metric{
		exact("filter-bits/key", 8*float64(total.FilterBytes)/keys),
		exact("index-bits/key", 8*float64(total.IndexBytes)/keys),
		exact("files", float64(total.Files)),
		exact("runs", float64(total.Runs)),
		exact("bytes", float64(total.Bytes)),
	}
	if r.Settings.Separate == 0 { // else sorted files are not all there is, see disk/live
		out = append(out, exact("space-amp", float64(total.Bytes)/float64(r.Build.LiveBytes)))
	}
	if w := r.Build.Usage.Written(); w.Known() && r.Build.UserBytes > 0 {
		m := exact("write-amp", float64(w)/float64(r.Build.UserBytes))
		m.Exact = r.Settings.Shape == Grown // others load without rests: two memtables may go to disk as one
		out = append(out, m)
	}
	if r.Build.WrittenBytes > 0 && (r.Settings.Separate > 0 || r.Build.Tree.Overwrites > 0) {
		for _, m := range []Metric{
			exact("written/user", float64(r.Build.WrittenBytes)/float64(r.Build.UserBytes)),
			exact("disk/live", float64(r.Build.DiskBytes)/float64(r.Build.LiveBytes)),
		} {
			m.Exact, m.Samples = false, []float64{m.Value}
			out = append(out, m)
		}
	}
	if m := r.Usage.FilterMemory; m.Known() {
		out = append(out, exact("filter-memory-bytes", float64(m)),
			exact("index-memory-bytes", float64(r.Usage.IndexMemory)))
	}
	seconds := r.Build.LoadSeconds + r.Build.SettleSeconds
	return append(out, Metric{Kind: StoreKind, Unit: "build-s", Value: seconds, Better: lower,
		Samples: []float64{seconds}})
}
