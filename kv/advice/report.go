package advice

import (
	"time"

	"github.com/siftkv/siftkv/internal/advise"
)

// A Report is what a store's lookups and scans say about its settings. Costs are predictions of a model. It knows the
// files and blocks that each key leads to, the theory of filters, and which blocks a cache of some size would have
// had. docs/advise.md says how good they are.
type Report struct {
	// Keep says that the settings in force are as good as any that take no more memory: nothing else would save
	// 3 % of what an operation takes.
	Keep bool `json:"keep"`
	// Options is the text of the recommended settings, a line for each that changes, as kv.ParseOptions takes it; empty
	// if Keep is set. All other settings stay as they are.
	Options string `json:"options"`
	// Words say in a sentence or two what is recommended, and what that would bring.
	Words string `json:"words"`
	// Confidence is "high", "medium" or "low", and Why says what limits it.
	Confidence string `json:"confidence"`
	Why        string `json:"why"`
	// Gain is the part of the time of an operation that the recommendation would save, 0 to 1.
	Gain float64 `json:"gain"`
	// RewriteFiles and RewriteBytes are the files whose filters are not those of the recommendation, and their
	// sizes: what kv.DB.CompactFilters would write for it.
	RewriteFiles int   `json:"rewrite_files"`
	RewriteBytes int64 `json:"rewrite_bytes"`

	Now         Setting `json:"now"`         // the settings in force, and the filters that files have
	Recommended Setting `json:"recommended"` // Now if Keep is set

	// Front has the settings that no other one beats at their memory, in the order of memory: with less memory
	// all others cost more.
	Front []Setting `json:"front"`
	// Caches has the filters of now with other sizes of the cache, in their order: the miss-ratio curve.
	Caches []Setting `json:"caches"`
	// Styles has what lookups would read under each style of compaction, by its design; nil if that is not known.
	Styles []Style `json:"styles"`
	// Worth is what a little more and less memory for the cache and for filters would bring.
	Worth []Worth `json:"worth"`

	Sample  Sample   `json:"sample"`
	Unknown []string `json:"unknown"` // what the model cannot know here, a clause each
	Prices  string   `json:"prices"`  // where the times of a probe, a cached block and a read are from
}

// A Setting is a setting with what lookups and scans would cost under it.
type Setting struct {
	Filter       string `json:"filter"`        // spec of all files' filters; empty: those that they have
	FilterBudget int64  `json:"filter_budget"` // as kv.Options.FilterBudget, in bytes; 0: none
	RangeFilter  string `json:"range_filter"`  // spec, of all files but the last run's; empty: what they have
	CacheSize    int64  `json:"cache_size"`    // bytes
	BlockSize    int64  `json:"block_size"`    // bytes of data blocks; 0: what files have
	FilterBytes  int64  `json:"filter_bytes"`  // of all filters, those of ranges included
	// Memory is that of filters, cache and memory of false positives in bytes, with what indexes take more than now.
	Memory     int64   `json:"memory"`
	BitsPerKey float64 `json:"bits_per_key"` // of filters

	Lookups Cost `json:"lookups"` // all of them
	Found   Cost `json:"found"`   // of them, those of keys that are there
	Absent  Cost `json:"absent"`  // and those of keys that are not
	Scans   Cost `json:"scans"`
}

// A Cost is what operations of a kind take, on average.
type Cost struct {
	Operations int `json:"operations"` // of the sample, that were counted

	Blocks      float64 `json:"blocks"`       // data blocks that are searched, cached ones too
	BlocksLow   float64 `json:"blocks_low"`   // 95 of 100 filters make it between this
	BlocksHigh  float64 `json:"blocks_high"`  // and this
	DeviceReads float64 `json:"device_reads"` // of Blocks, those that the cache does not have
	DeviceBytes float64 `json:"device_bytes"` // of these, as stored
	Nanos       float64 `json:"ns"`           // time in nanoseconds, by Report.Prices
}

// A Style is what lookups read under a style of compaction, on average over the growth of a store.
type Style struct {
	Style         string  `json:"style"` // as kv.ParseCompactionStyle takes it
	Now           bool    `json:"now"`   // it is the store's
	Runs          float64 `json:"runs"`  // sorted runs
	MaxRuns       float64 `json:"max_runs"`
	FoundBlocks   float64 `json:"found_blocks"`        // of a lookup of a key that is there
	AbsentBlocks  float64 `json:"absent_blocks"`       // and of one that is not
	AbsentAtWorst float64 `json:"absent_blocks_worst"` // with MaxRuns
}

// A Worth is what a change of memory brings, at the margin.
type Worth struct {
	What        string  `json:"what"`          // "cache" or "filter"
	From        string  `json:"from"`          // a size, or a spec
	To          string  `json:"to"`            //
	Bytes       int64   `json:"bytes"`         // more memory; negative: less
	Reads       float64 `json:"reads"`         // device reads more in a million lookups; negative: fewer
	Nanos       float64 `json:"ns"`            // more for an operation; negative: fewer
	ReadsPerMiB float64 `json:"reads_per_mib"` // device reads that a MiB saves in a million lookups
}

// An Sample is what advice rests on.
type Sample struct {
	Lookups int           `json:"lookups"`
	Keys    int           `json:"keys"` // distinct
	Scans   int           `json:"scans"`
	OneIn   float64       `json:"one_in"`  // keys, of which one is in the sample
	Span    time.Duration `json:"span_ns"` // from the first to the last; 0: not known
	Dropped uint64        `json:"dropped"` // lookups and scans that it is known to lack
	Changed int           `json:"changed"` // lookups with another answer than the store has now
}

// newReport returns what a caller sees of the model's result.
func newReport(m *advise.Advice, t *advise.Trace, oneIn float64) *Report {
	r := &m.Recommendation
	out := &Report{Keep: r.Keep, Options: r.Options, Words: r.Words, Confidence: r.Confidence, Why: r.Why,
		Gain: r.Gain, Now: predicted(&m.Now), Recommended: predicted(&r.Setting), Front: predictions(m.Front),
		Caches: predictions(m.Curve), Unknown: m.Unknown, Prices: m.Prices.From,
		Sample: Sample{Lookups: len(t.Lookups), Keys: m.Sample.Keys, Scans: len(t.Scans), OneIn: oneIn,
			Span: t.Span, Dropped: t.Dropped, Changed: t.Changed}}
	for _, s := range m.Styles {
		out.Styles = append(out.Styles, Style{Style: s.Style, Now: s.Now, Runs: s.Runs, MaxRuns: s.Most,
			FoundBlocks: s.Found, AbsentBlocks: s.Absent, AbsentAtWorst: s.Worst})
	}
	for _, w := range m.Worth {
		out.Worth = append(out.Worth, Worth(w))
	}
	return out
}

func predictions(all []advise.Prediction) (out []Setting) {
	for i := range all {
		out = append(out, predicted(&all[i]))
	}
	return out
}

func predicted(p *advise.Prediction) Setting {
	cost := func(c *advise.Cost) Cost {
		return Cost{Operations: c.Operations, Blocks: c.Blocks, BlocksLow: c.Low, BlocksHigh: c.High,
			DeviceReads: c.Reads, DeviceBytes: c.Bytes, Nanos: c.Nanos}
	}
	return Setting{Filter: p.Filter, FilterBudget: p.Budget, RangeFilter: p.Ranges, CacheSize: p.Cache,
		BlockSize: p.BlockSize, FilterBytes: p.FilterBytes, Memory: p.Memory, BitsPerKey: p.BitsPerKey,
		Lookups: cost(&p.All), Found: cost(&p.Found), Absent: cost(&p.Absent), Scans: cost(&p.Scans)}
}
