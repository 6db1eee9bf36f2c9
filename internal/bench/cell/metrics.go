package cell

import (
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// StoreKind is the kind of metrics that are of the store and not of lookups.
const StoreKind = "store"

// lower says that less of something is better.
const (
	lower = "lower"
)

// metrics lists every number of a cell that can be compared, in the order of reports.
// What the engine does not count is left out.
func metrics(r *Result) []Metric {
	var out []Metric
	for _, kind := range engine.Kinds {
		out = append(out, phaseMetrics(kind, r.Phase(kind), r.Settings)...)
	}
	return append(out, storeMetrics(r)...)
}

// phaseMetrics lists what lookups of one kind cost.
func phaseMetrics(kind engine.Kind, p *Phase, s Settings) []Metric {
	if p.Lookups == 0 {
		return nil // of a trace
	}
	samples := make([]float64, len(p.Repetitions))
	for i, rep := range p.Repetitions {
		samples[i] = rep.NsPerLookup()
	}
	out := []Metric{{Kind: string(kind), Unit: "ns/op", Value: measure.Median(samples), Better: lower, Samples: samples}}
	for _, q := range []struct {
		unit  string
		nanos int64
	}{
		{"p50-ns", p.Latency.P50}, {"p90-ns", p.Latency.P90}, {"p99-ns", p.Latency.P99}, {"p99.9-ns", p.Latency.P999},
		{"p99.99-ns", p.Latency.P9999}, {"max-ns", p.Latency.Max},
	} {
		out = append(out, Metric{Kind: string(kind), Unit: q.unit, Value: float64(q.nanos), Better: lower, Samples: []float64{float64(q.nanos)}})
	}
	t := &p.Counters.Total
	blocks := t.BlocksFromCache.Plus(t.BlocksFromDisk)
	if t.LeavesFromDisk.Known() {
		blocks = blocks.Plus(t.LeavesFromDisk)
	}
	useful := engine.Count(0)
	if kind == engine.Existing {
		useful = engine.Count(int64(p.Lookups) * s.ValueSize)
	}
	for _, c := range []struct {
		unit   string
		count  engine.Count
		better string
	}{
		{"files/op", t.FilesConsidered, lower},
		{"out-of-bounds/op", t.OutOfBounds, ""},
		{"filter-checks/op", t.FilterChecks, lower},
		{"negatives/op", t.Negatives, ""},
		{"true-positives/op", t.TruePositives, ""},
		{"false-positives/op", t.FalsePositives, lower},
		{"unfiltered/op", t.Unfiltered, lower},
		{"index/op", t.IndexLookups, lower},
		{"blocks/op", blocks, lower},
		{"cached-blocks/op", t.BlocksFromCache, ""},
		{"disk-blocks/op", t.BlocksFromDisk, lower},
		{"disk-bytes/op", t.BytesFromDisk, lower},
		{"decoded-bytes/op", t.BytesDecoded, lower},
		{"useful-bytes/op", useful, ""},
	} {
		if c.count.Known() && p.Lookups > 0 {
			out = append(out, Metric{Kind: string(kind), Unit: c.unit, Value: float64(c.count) / float64(p.Lookups), Exact: true, Better: c.better})
		}
	}
	if p.FPR != nil {
		out = append(out, Metric{Kind: string(kind), Unit: "fpr", Value: p.FPR.Value, Exact: true, Better: lower})
	}
	return out
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
		exact("space-amp", float64(total.Bytes)/float64(r.Build.LiveBytes)),
	}
	if w := r.Build.Usage.Written(); w.Known() && r.Build.UserBytes > 0 {
		m := exact("write-amp", float64(w)/float64(r.Build.UserBytes))
		m.Exact = r.Settings.Shape == Grown // others load without rests: two memtables may go to disk as one
		out = append(out, m)
	}
	if m := r.Usage.FilterMemory; m.Known() {
		out = append(out, exact("filter-memory-bytes", float64(m)), exact("index-memory-bytes", float64(r.Usage.IndexMemory)))
	}
	seconds := r.Build.LoadSeconds + r.Build.SettleSeconds
	return append(out, Metric{Kind: StoreKind, Unit: "build-s", Value: seconds, Better: lower, Samples: []float64{seconds}})
}
