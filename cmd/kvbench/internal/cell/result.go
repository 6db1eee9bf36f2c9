package cell

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Experiment names cells among the results of all experiments.
const Experiment = "cell"

// A Result is everything that a cell found out. Its JSON form is the file that a sweep
// writes; docs/bench/cells.md describes it. It has what every result has, with the metrics as rows, and more.
type Result struct {
	Name        string              `json:"name"`
	Settings    Settings            `json:"settings"`
	Environment environ.Environment `json:"environment"`
	Keys        keys.Description    `json:"keys"`
	Build       Build               `json:"build"`
	Shape       engine.Shape        `json:"shape"`
	BitsPerKey  float64             `json:"bits_per_key"`   // of filter, on disk
	Theory      *measure.Theory     `json:"theory"`         // null without a filter, and if nothing is known
	Levels      []measure.LevelRate `json:"level_rates"`    // empty if the engine does not count by level
	Sum         *measure.Sum        `json:"rate_sum"`       // of the measured rates of all runs; null with Levels
	Predicted   float64             `json:"rate_predicted"` // sum of the predicted ones
	Usage       engine.Usage        `json:"usage"`          // of the store that answered, after the lookups
	Existing    Phase               `json:"existing"`
	Absent      Phase               `json:"absent"`
	Scans       *Scans              `json:"scans,omitempty"`
	Metrics     []Metric            `json:"-"` // in JSON they are rows
	Identities  measure.Identities  `json:"identities"`
	PageCache   measure.PageCache   `json:"page_cache"`
	TimerNs     int64               `json:"timer_ns"` // one reading of the clock, part of every percentile
	WallSeconds float64             `json:"wall_seconds"`
	Notes       []string            `json:"notes"`
	Warnings    []string            `json:"warnings"`
}

// MarshalJSON writes the metrics as rows.
func (r *Result) MarshalJSON() ([]byte, error) {
	type fields Result
	return json.Marshal(struct {
		Schema     string `json:"schema"`
		Experiment string `json:"experiment"`
		*fields
		Rows []tidy.Row `json:"rows"`
	}{tidy.Schema, Experiment, (*fields)(r), tidy.Rows(r.Metrics)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Result) UnmarshalJSON(data []byte) error {
	type fields Result
	form := struct {
		*fields
		Rows []tidy.Row `json:"rows"`
	}{fields: (*fields)(r)}
	err := json.Unmarshal(data, &form)
	r.Metrics = tidy.Metrics(form.Rows)
	return err
}

// A Build says how the store came to be.
type Build struct {
	Reused        bool         `json:"reused"` // built for the cell before, which has the same files
	Tree          engine.Tree  `json:"tree"`
	Rewritten     int          `json:"rewritten"` // writes of keys that were there
	LoadSeconds   float64      `json:"load_seconds"`
	SettleSeconds float64      `json:"settle_seconds"`
	Usage         engine.Usage `json:"usage"`
	UserBytes     int64        `json:"user_bytes"` // of keys and values written
	// WrittenBytes is what the process gave to the kernel to write meanwhile: logs, tables and
	// blob files; DiskBytes is what all files of the store take then. 0 where it is not measured.
	WrittenBytes int64 `json:"written_bytes,omitempty"`
	DiskBytes    int64 `json:"disk_bytes,omitempty"`
	LiveBytes    int64 `json:"live_bytes"` // of the keys and values that are there
	Settled      bool  `json:"settled"`
}

// A Phase is what lookups of one kind did.
type Phase struct {
	measure.Phase
	Spectrum []Quantile `json:"spectrum"`
}

// A Quantile is a point of the distribution of latencies.
type Quantile struct {
	Percentile float64 `json:"p"`
	Nanos      int64   `json:"ns"`
}

// Phase returns what lookups of a kind did.
func (r *Result) Phase(kind engine.Kind) *Phase {
	if kind == engine.Existing {
		return &r.Existing
	}
	return &r.Absent
}

// A Metric is a number of a cell that can be held against that of another.
type Metric = tidy.Metric

// Metric returns a metric of all levels by kind and unit, nil if the cell has none.
func (r *Result) Metric(kind, unit string) *Metric { return tidy.Find(r.Metrics, "", kind, unit) }

// Measured returns the cell in the form that all results share, without what is of a level.
func (r *Result) Measured() *tidy.Measured {
	all := slices.DeleteFunc(slices.Clone(r.Metrics), func(m Metric) bool { return m.Level != "" })
	return &tidy.Measured{Name: r.Name, Settings: r.Settings.Shown(), Metrics: all, Environment: &r.Environment}
}

// Measured returns cells in the form that all results share.
func Measured(set []*Result) (all []*tidy.Measured) {
	for _, r := range set {
		all = append(all, r.Measured())
	}
	return all
}

// result gathers what was measured of an open store, and derives from the counters what
// reports want to know.
func (x *run) result() *Result {
	r := &Result{
		Name: x.name, Settings: x.settings, Keys: x.source.Describe(), Build: x.built.about,
		Shape: x.built.shape, PageCache: x.pageCache, Usage: engine.UnknownUsage(), Scans: x.scans,
		Environment: x.env, TimerNs: x.timer,
	}
	if m, ok := x.built.store.(engine.Meter); ok {
		r.Usage = m.Usage()
	}
	for _, kind := range engine.Kinds {
		x.passes[kind].summarise(r.Phase(kind), x.distinct(kind))
	}
	total, spread := r.Shape.Total(), r.Settings.Budget == Spread
	r.BitsPerKey = total.BitsPerKey()
	if total.Files > 0 && total.FilterBytes > 0 && !spread { // each level has bits of its own: see Levels
		if bits, rate, ok := x.variant.Expected(int(total.Entries) / total.Files); ok {
			r.Theory = &measure.Theory{BitsPerKey: bits, FPR: rate}
		}
	}
	if len(r.Absent.Counters.Levels) > 0 {
		r.Levels = measure.LevelRates(r.Shape, r.Absent.Counters, x.distinct(engine.Absent), x.variant.Policy, spread)
		predicted, measured := measure.SumRates(r.Levels)
		r.Predicted, r.Sum = predicted, &measured
	}
	r.Metrics, r.Identities = metricsOf(r), checkIdentities(r, x.variant.Null)
	r.Notes, r.Warnings = x.notes(r), warnings(r)
	return r
}

func checkIdentities(r *Result, null bool) measure.Identities {
	c := &measure.Checker{}
	oracle := r.Settings.Filter == engine.OracleFilter
	for _, kind := range engine.Kinds {
		c.Repetitions(r.Name, r.Phase(kind).Repetitions, oracle, measure.Loop{Kind: kind,
			Settled: r.Build.Settled && !null, Beyond: r.Keys.Replay != nil && r.Keys.Replay.Beyond > 0})
	}
	c.Out.Rules = measure.Rules(oracle)
	checkScans(r, c)
	if null || r.Shape.Total().Entries == 0 {
		return c.Out // not a tree of files, or one that does not tell
	}
	checkLevels(r, c)
	c.Where = r.Name
	entries, present := engine.Count(r.Shape.Total().Entries), engine.Count(r.Keys.Present)
	if r.Build.Settled {
		c.Equal(measure.RuleEntries, entries, present)
	} else {
		c.Compare(measure.RuleEntries, entries, ">=", present)
	}
	return c.Out
}

const (
	ruleRates = "probes and passes behind the rates of all levels = those counted in all"
	ruleRuns  = "runs, files, entries and filter bytes of the runs of a level = those of the level"
	ruleAsked = "lookups x runs of a level >= files considered there"
)

// checkLevels checks that no probe for an absent key is missing from the rates, that they are of as many runs as there
// are, and that no lookup asked more of them.
func checkLevels(r *Result, c *measure.Checker) {
	if len(r.Levels) == 0 {
		return
	}
	c.Out.Rules = append(c.Out.Rules, ruleRates, ruleRuns, ruleAsked)
	c.Where = r.Name + ", absent keys"
	probes, passed := engine.Count(0), engine.Count(0)
	for _, l := range r.Levels {
		if m := l.Measured; m != nil {
			probes += engine.Count(m.Trials)
			passed += engine.Count(math.Round(m.Value * float64(m.Trials)))
		}
	}
	total := r.Absent.Counters.Total
	c.Equal(ruleRates, probes, total.FilterChecks.Plus(total.Unfiltered))
	c.Equal(ruleRates, passed, total.IndexLookups.Plus(total.Remembered))
	for _, l := range r.Shape.Levels {
		sum := engine.Shape{Levels: r.Shape.RunsOf(l)}.Total()
		for _, pair := range [][2]int64{
			{int64(sum.Runs), int64(l.Runs)}, {int64(sum.Files), int64(l.Files)}, {sum.Entries, l.Entries},
			{sum.FilterBytes, l.FilterBytes},
		} {
			c.Equal(ruleRuns, engine.Count(pair[0]), engine.Count(pair[1]))
		}
		if l.Level < len(r.Absent.Counters.Levels) {
			c.Compare(ruleAsked, engine.Count(r.Absent.Lookups)*engine.Count(l.Runs), ">=",
				r.Absent.Counters.Levels[l.Level].FilesConsidered)
		}
	}
}

// StoreKind is the kind of metrics that are of the store and not of lookups.
const StoreKind = "store"

const (
	lower  = "lower"
	higher = "higher"
)

// metricsOf lists every number of a cell that can be compared, in the order of reports.
// What the engine does not count is left out.
func metricsOf(r *Result) []Metric {
	var out []Metric
	for _, kind := range engine.Kinds {
		out = append(out, phaseMetrics(kind, r.Phase(kind), r.Settings)...)
	}
	return append(append(out, scanMetrics(r)...), storeMetrics(r)...)
}

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
	for _, q := range []struct {
		unit  string
		nanos int64
	}{
		{"p50-ns", p.Latency.P50}, {"p90-ns", p.Latency.P90}, {"p99-ns", p.Latency.P99}, {"p99.9-ns", p.Latency.P999},
		{"p99.99-ns", p.Latency.P9999}, {"max-ns", p.Latency.Max},
	} { // each is one number per cell
		out = append(out, Metric{Kind: string(kind), Unit: q.unit, Value: float64(q.nanos), Better: lower,
			Samples: []float64{float64(q.nanos)}})
	}
	out = append(out, p.countMetrics(kind, s, "", func(c *engine.Counters) *engine.Tally { return &c.Total })...)
	useful := 0.0
	if kind == engine.Existing {
		useful = float64(s.ValueSize)
	}
	out = append(out, Metric{Kind: string(kind), Unit: "useful-bytes/op", Value: useful, Exact: true})
	if p.FPR != nil {
		out = append(out, Metric{Kind: string(kind), Unit: "fpr", Value: p.FPR.Value, Exact: true, Better: lower})
	}
	for i := range p.Counters.Levels {
		tally := func(c *engine.Counters) *engine.Tally { return &c.Levels[i] }
		out = append(out, slices.DeleteFunc(p.countMetrics(kind, s, strconv.Itoa(i), tally),
			func(m Metric) bool { return m.Value == 0 && cmp.Or(m.Samples...) == 0 })...)
	}
	return out
}

type countMetric struct {
	unit      string
	better    string
	cache     bool // it depends on what is in the cache at the moment
	remembers bool // it depends on which false positives are remembered
	of        func(t *engine.Tally) engine.Count
}

var countMetrics = []countMetric{
	{"files/op", lower, false, false, func(t *engine.Tally) engine.Count { return t.FilesConsidered }},
	{"out-of-bounds/op", "", false, false, (*engine.Tally).RuledOut},
	{"filter-checks/op", lower, false, false, func(t *engine.Tally) engine.Count { return t.FilterChecks }},
	{"negatives/op", "", false, false, func(t *engine.Tally) engine.Count { return t.Negatives }},
	{"true-positives/op", "", false, false, func(t *engine.Tally) engine.Count { return t.TruePositives }},
	{"false-positives/op", lower, false, true, func(t *engine.Tally) engine.Count { return t.FalsePositives }},
	{"remembered/op", "", false, true, func(t *engine.Tally) engine.Count { return t.Remembered }},
	{"unfiltered/op", lower, false, false, func(t *engine.Tally) engine.Count { return t.Unfiltered }},
	{"index/op", lower, false, true, func(t *engine.Tally) engine.Count { return t.IndexLookups }},
	{"out-of-index/op", "", false, true, func(t *engine.Tally) engine.Count { return t.OutOfIndex }},
	{"blocks/op", lower, false, true, (*engine.Tally).Blocks},
	{"cached-blocks/op", "", true, true, func(t *engine.Tally) engine.Count { return t.BlocksFromCache }},
	{"disk-blocks/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.BlocksFromDisk }},
	{"index-leaves/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.LeavesFromDisk }},
	{"disk-bytes/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.BytesFromDisk }},
	{"decoded-bytes/op", lower, true, true, func(t *engine.Tally) engine.Count { return t.BytesDecoded }},
	{"answered/op", "", false, false, func(t *engine.Tally) engine.Count { return t.Answered }},
}

// countMetrics returns the known counts of a tally of a level per lookup. With several workers (shared), which of two
// finds a block in the cache, and whether both read it, is a matter of timing: what depends on
// it is no exact count, and has samples. Nor is what comes behind a memory of false positives,
// in which places are drawn by lot.
func (p *Phase) countMetrics(kind engine.Kind, s Settings, level string,
	tally func(*engine.Counters) *engine.Tally) (out []Metric) {
	for _, c := range countMetrics {
		count := c.of(tally(&p.Counters))
		if !count.Known() {
			continue
		}
		m := Metric{Kind: string(kind), Level: level, Unit: c.unit, Better: c.better, Exact: true,
			Value: float64(count) / float64(p.Lookups)}
		if s.Threads > 1 && (c.cache || c.unit == "blocks/op" && !p.countsBlocks()) || s.Remember > 0 && c.remembers {
			m.Exact = false
			for _, rep := range p.Repetitions {
				m.Samples = append(m.Samples, float64(c.of(tally(&rep.Counters)))/float64(rep.Lookups))
			}
			m.Value = measure.Median(m.Samples)
		}
		out = append(out, m)
	}
	return out
}

// countsBlocks reports whether the blocks of lookups are data blocks, each counted
// once whether it was in the cache or not.
func (p *Phase) countsBlocks() bool {
	t := &p.Counters.Total
	// An engine that does not count index look-ups has blocks of indexes and filters among
	// these, and of leaves of indexes those from the cache are not counted.
	return t.IndexLookups.Known() && t.LeavesFromDisk <= 0
}

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
		if r.Settings.Shape != Grown { // it is loaded without rests: two memtables may go to disk as one
			m.Exact, m.Samples = false, []float64{m.Value}
		}
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

func (x *run) notes(r *Result) []string {
	n, s := bench.Remarks{}, &r.Settings
	iterator := x.variant.Access == engine.Iterator
	n.If(s.State == Cold, "Cold: before each loop the store was closed, its files were dropped from the page cache, "+
		"and it was opened again. Within a loop caches fill.")
	n.If(s.State != Cold, "Warm: a pass of lookups ran before; the operating system's page cache holds the files, "+
		"and a block from disk is a read from the file.")
	if s.Workload == Replay {
		n = append(n, replayNote(&r.Keys, s.Lookups))
	}
	n.If(s.Engine == "pebble", "Pebble's Get does not consult the filters of the last level (L6), and a settled tree "+
		"is all last level: it shows no filter checks whatever the filter.")
	n.If(iterator, "One iterator is reused with UseL6Filters and SeekPrefixGE: it does not see later writes.")
	n.If(s.Engine == "pebble" || iterator, "Pebble's blocks and bytes include index and filter blocks, which it "+
		"reads through its block cache; SiftKV's are data blocks, since it keeps index and filters in memory.")
	n.If(s.Engine == engine.RocksDBName, "%s", engine.RocksDBNote())
	n.If(s.Filter == engine.OracleFilter, "The oracle never errs. The keys of each file are in the memory of kvbench "+
		"and not counted; a file has eight bytes in place of a filter. Its times are those of a hash table.")
	return n
}

func warnings(r *Result) []string {
	w := append(bench.Remarks{}, r.Environment.Warnings...)
	w = append(w, replayWarnings(&r.Keys)...)
	w.If(r.Settings.Threads > int64(r.Environment.GOMAXPROCS),
		"%d workers share %d processors: their times are also those of waiting for a turn", r.Settings.Threads,
		r.Environment.GOMAXPROCS)
	w.If(r.Settings.Shape == Settled && len(r.Shape.Levels) > 0 && !r.Build.Settled,
		"%s is not settled: its files are in %d levels", r.Name, len(r.Shape.Levels))
	w.If(r.PageCache.Impossible != "", "not cold: %s", r.PageCache.Impossible)
	w.If(r.PageCache.Left > r.Build.LiveBytes/50, "not cold: %d bytes of the store stayed in the page cache",
		r.PageCache.Left)
	return w
}

func replayNote(k *keys.Description, lookups int64) string {
	t := k.Replay
	text := fmt.Sprintf("Replay of %d lookups of keys that were found and %d of keys that never were, recorded over "+
		"%s: each kind by itself, in the recorded order, as fast as it goes, at most %d. The store has the %d keys "+
		"that were found, and ", t.Existing, t.Absent, t.Span.Round(time.Millisecond), lookups, k.Present-t.Filled)
	if t.Filled > 0 {
		text += fmt.Sprintf("%d like them that are never looked up.", t.Filled)
	} else {
		text += "no others."
	}
	if t.Hashed {
		text += " The trace has hashes: keys are made up, and none is a neighbour of another that it was near."
	}
	if t.OneIn > 1 {
		text += fmt.Sprintf(" It has one key in %d: a cache that is as many times smaller finds about as much.",
			t.OneIn)
	}
	return text
}

func replayWarnings(k *keys.Description) []string {
	t := k.Replay
	if t == nil {
		return nil
	}
	var w bench.Remarks
	w.If(t.Unfinished, "the trace has no end: lookups that came after are not in it")
	w.If(t.Dropped > 0, "the trace lacks %d lookups, which its writer was too slow for", t.Dropped)
	w.If(t.Missed > 0, "%d lookups did not find a key that others found: they are replayed as lookups of an "+
		"existing key", t.Missed)
	return w
}
