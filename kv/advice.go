package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// Errors of Advise.
var (
	// ErrNoLookupSample is returned by Advise of a store that keeps no sample: see Options.LookupSample.
	ErrNoLookupSample = errors.New("siftkv: the store keeps no sample of its lookups: set Options.LookupSample")
	// ErrSmallSample is matched by the error of Advise if there is too little to go by. The error
	// says how many lookups and scans there are, and how many are wanted.
	ErrSmallSample = errors.New("siftkv: too few lookups for advice")
)

const (
	leastAsked = 1000      // lookups and scans that advice needs, together
	maxAsked   = 2_000_000 // lookups that it takes from a trace, and as many scans
)

// Advice is what a store's lookups and scans say about its settings. Costs are predictions of a model. It knows the
// files and blocks that each key leads to, the theory of filters, and which blocks a cache of some size would have
// had. docs/advise.md says how good they are.
type Advice struct {
	// Keep says that the settings in force are as good as any that take no more memory: nothing else would save
	// 3 % of what an operation takes.
	Keep bool `json:"keep"`
	// Options is the text of the recommended settings, a line for each that changes, as ParseOptions takes it; empty
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
	// sizes: what CompactFilters would write for it.
	RewriteFiles int   `json:"rewrite_files"`
	RewriteBytes int64 `json:"rewrite_bytes"`

	Now         PredictedSetting `json:"now"`         // the settings in force, and the filters that files have
	Recommended PredictedSetting `json:"recommended"` // Now if Keep is set

	// Front has the settings that no other one beats at their memory, in the order of memory: with less memory
	// all others cost more.
	Front []PredictedSetting `json:"front"`
	// Caches has the filters of now with other sizes of the cache, in their order: the miss-ratio curve.
	Caches []PredictedSetting `json:"caches"`
	// Styles has what lookups would read under each style of compaction, by its design; nil if that is not known.
	Styles []StyleCost `json:"styles"`
	// Worth is what a little more and less memory for the cache and for filters would bring.
	Worth []MemoryWorth `json:"worth"`

	Sample  AdviceSample `json:"sample"`
	Unknown []string     `json:"unknown"` // what the model cannot know here, a clause each
	Prices  string       `json:"prices"`  // where the times of a probe, a cached block and a read are from
}

// A PredictedSetting is a setting with what lookups and scans would cost under it.
type PredictedSetting struct {
	Filter       string `json:"filter"`        // spec of all files' filters; empty: those that they have
	FilterBudget int64  `json:"filter_budget"` // as Options.FilterBudget, in bytes; 0: none
	RangeFilter  string `json:"range_filter"`  // spec, of all files but the last run's; empty: what they have
	CacheSize    int64  `json:"cache_size"`    // bytes
	BlockSize    int64  `json:"block_size"`    // bytes of data blocks; 0: what files have
	FilterBytes  int64  `json:"filter_bytes"`  // of all filters, those of ranges included
	// Memory is that of filters, cache and memory of false positives in bytes, with what indexes take more than now.
	Memory     int64   `json:"memory"`
	BitsPerKey float64 `json:"bits_per_key"` // of filters

	Lookups PredictedCost `json:"lookups"` // all of them
	Found   PredictedCost `json:"found"`   // of them, those of keys that are there
	Absent  PredictedCost `json:"absent"`  // and those of keys that are not
	Scans   PredictedCost `json:"scans"`
}

// A PredictedCost is what operations of a kind take, on average.
type PredictedCost struct {
	Operations int `json:"operations"` // of the sample, that were counted

	Blocks      float64 `json:"blocks"`       // data blocks that are searched, cached ones too
	BlocksLow   float64 `json:"blocks_low"`   // 95 of 100 filters make it between this
	BlocksHigh  float64 `json:"blocks_high"`  // and this
	DeviceReads float64 `json:"device_reads"` // of Blocks, those that the cache does not have
	DeviceBytes float64 `json:"device_bytes"` // of these, as stored
	Nanos       float64 `json:"ns"`           // time in nanoseconds, by Advice.Prices
}

// A StyleCost is what lookups read under a style of compaction, on average over the growth of a store.
type StyleCost struct {
	Style         string  `json:"style"` // as ParseCompactionStyle takes it
	Now           bool    `json:"now"`   // it is the store's
	Runs          float64 `json:"runs"`  // sorted runs
	MostRuns      float64 `json:"most_runs"`
	FoundBlocks   float64 `json:"found_blocks"`        // of a lookup of a key that is there
	AbsentBlocks  float64 `json:"absent_blocks"`       // and of one that is not
	AbsentAtWorst float64 `json:"absent_blocks_worst"` // with MostRuns
}

// A MemoryWorth is what a change of memory brings, at the margin.
type MemoryWorth struct {
	What        string  `json:"what"`          // "cache" or "filter"
	From        string  `json:"from"`          // a size, or a spec
	To          string  `json:"to"`            //
	Bytes       int64   `json:"bytes"`         // more memory; negative: less
	Reads       float64 `json:"reads"`         // device reads more in a million lookups; negative: fewer
	Nanos       float64 `json:"ns"`            // more for an operation; negative: fewer
	ReadsPerMiB float64 `json:"reads_per_mib"` // device reads that a MiB saves in a million lookups
}

// An AdviceSample is what advice rests on.
type AdviceSample struct {
	Lookups int           `json:"lookups"`
	Keys    int           `json:"keys"` // distinct
	Scans   int           `json:"scans"`
	OneIn   float64       `json:"one_in"`  // keys, of which one is in the sample
	Span    time.Duration `json:"span_ns"` // from the first to the last; 0: not known
	Dropped uint64        `json:"dropped"` // lookups and scans that it is known to lack
	Changed int           `json:"changed"` // lookups with another answer than the store has now
}

// AdviceOptions say what Advise goes by. The zero value of each field means its default.
type AdviceOptions struct {
	// Trace is one that a lookuptrace.Tracer wrote, of this store or another with the same keys. If it has hashes in
	// place of keys, where they lead is made up, and the confidence is less. Up to two million lookups, and as many
	// scans, are taken of it, with some hundred bytes of memory for each distinct key. Nil: the sample of
	// Options.LookupSample.
	Trace io.Reader
	// Filters are specs of the filters to try. Nil: blocked and ribbon filters of few bits to many, some others, and
	// the store's own.
	Filters []string
	// Memory is what filters and cache may take together, in bytes. 0: as much as now.
	Memory int64
	// DeviceRead is what reading a block takes that the cache does not have. 0: it is measured, with files in the
	// page cache as they are; 10 ms in an object store.
	DeviceRead time.Duration
}

// check says what is wrong with the options.
func (o *AdviceOptions) check() error {
	if o.Memory < 0 || o.DeviceRead < 0 {
		return invalidf("AdviceOptions: Memory or DeviceRead is negative")
	}
	for _, spec := range o.Filters {
		if _, err := filterpolicy.Parse(spec); err != nil {
			return invalidf("AdviceOptions.Filters: %v", err)
		}
	}
	return nil
}

// Advise predicts what lookups and scans would cost under other filters, cache sizes and filter budgets, and
// recommends a setting. It goes by the store's own sample or by a trace. It locates the keys in the present state of
// the store, with the filters and indexes that are in memory. Nil options are the defaults. It opens files that are
// not open, and reads some 64 blocks to time them. It reads a key's blocks only if several files may have the key, or
// may have its tombstone. It changes nothing, and takes some seconds of one processor; reads and writes go on
// meanwhile.
//
// Without a sample the error is ErrNoLookupSample, and with too small a one it matches ErrSmallSample. An error about
// the trace names it "the trace"; one about damage matches ErrCorruption. If ctx ends, it matches ctx.Err().
//
// A recommendation is carried out by opening the store with it: Options.String of what ParseOptions makes of
// Advice.Options, say. Files get the new filters as compactions rewrite them, or by CompactFilters.
func (d *DB) Advise(ctx context.Context, o *AdviceOptions) (*Advice, error) {
	if o == nil {
		o = &AdviceOptions{}
	}
	if d.closed.Load() {
		return nil, ErrClosed
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Trace == nil {
		if d.watch.sampler == nil {
			return nil, ErrNoLookupSample
		}
		s := d.watch.sampler.Take()
		return d.advise(ctx, o, traceOfSample(&s), s.OneIn)
	}
	r, err := lookuptrace.NewReader(o.Trace, "the trace")
	if err != nil {
		return nil, err
	}
	t, err := advise.ReadTrace(ctx, r, maxAsked)
	if err != nil {
		return nil, err
	}
	return d.advise(ctx, o, t, float64(t.OneIn))
}

// advise asks the model. One key in oneIn is in the trace, more precisely than that says.
func (d *DB) advise(ctx context.Context, o *AdviceOptions, t *advise.Trace, oneIn float64) (*Advice, error) {
	if n := len(t.Lookups) + len(t.Scans); n < leastAsked {
		return nil, fmt.Errorf("%w: there are %d lookups and %d scans, and %d are wanted", ErrSmallSample,
			len(t.Lookups), len(t.Scans), leastAsked)
	}
	w, err := d.newWhereabouts()
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.locate(ctx, t); err != nil {
		return nil, err
	}
	prices, err := w.prices(o)
	if err != nil {
		return nil, err
	}
	found, err := advise.New(&w.shape, t, prices).Advise(ctx, advise.Config{Filters: o.Filters, Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	r := newAdvice(found, t, oneIn)
	r.Unknown = append(r.Unknown, w.unknown()...)
	return r, w.countRewrites(r)
}

// newAdvice returns what a caller sees of the model's result.
func newAdvice(m *advise.Advice, t *advise.Trace, oneIn float64) *Advice {
	r := &m.Recommendation
	out := &Advice{Keep: r.Keep, Options: r.Options, Words: r.Words, Confidence: r.Confidence, Why: r.Why,
		Gain: r.Gain, Now: predicted(&m.Now), Recommended: predicted(&r.Setting), Front: predictions(m.Front),
		Caches: predictions(m.Curve), Unknown: m.Unknown, Prices: m.Prices.From,
		Sample: AdviceSample{Lookups: len(t.Lookups), Keys: m.Sample.Keys, Scans: len(t.Scans), OneIn: oneIn,
			Span: t.Span, Dropped: t.Dropped, Changed: t.Changed}}
	for _, s := range m.Styles {
		out.Styles = append(out.Styles, StyleCost{Style: s.Style, Now: s.Now, Runs: s.Runs, MostRuns: s.Most,
			FoundBlocks: s.Found, AbsentBlocks: s.Absent, AbsentAtWorst: s.Worst})
	}
	for _, w := range m.Worth {
		out.Worth = append(out.Worth, MemoryWorth(w))
	}
	return out
}

func predictions(all []advise.Prediction) (out []PredictedSetting) {
	for i := range all {
		out = append(out, predicted(&all[i]))
	}
	return out
}

func predicted(p *advise.Prediction) PredictedSetting {
	cost := func(c *advise.Cost) PredictedCost {
		return PredictedCost{Operations: c.Operations, Blocks: c.Blocks, BlocksLow: c.Low, BlocksHigh: c.High,
			DeviceReads: c.Reads, DeviceBytes: c.Bytes, Nanos: c.Nanos}
	}
	return PredictedSetting{Filter: p.Filter, FilterBudget: p.Budget, RangeFilter: p.Ranges, CacheSize: p.Cache,
		BlockSize: p.BlockSize, FilterBytes: p.FilterBytes, Memory: p.Memory, BitsPerKey: p.BitsPerKey,
		Lookups: cost(&p.All), Found: cost(&p.Found), Absent: cost(&p.Absent), Scans: cost(&p.Scans)}
}
