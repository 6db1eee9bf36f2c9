package advise

import (
	"cmp"
	"context"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
)

// A Config says what to predict. The zero value is a good one.
type Config struct {
	Filters []string // specs; nil: DefaultFilters, and the store's own
	Caches  []int64  // bytes; nil: an eighth of the store's up to eight times it
	Memory  int64    // that filters and cache may have together; 0: as now
}

// DefaultFilters are what is tried: the families that docs/study.md recommends, from few bits to
// many.
var DefaultFilters = []string{
	"none",
	"blocked:6", "blocked:8", "blocked:10", "blocked:12", "blocked:14", "blocked:16", "blocked:20",
	"ribbon:4", "ribbon:6", "ribbon:8", "ribbon:10", "ribbon:12", "ribbon:16",
	"cuckoo:12", "fuse:8",
}

// cacheFactors are the caches that are tried, as multiples of the store's.
var cacheFactors = []float64{0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 4, 8}

// MinCache is the smallest cache that is tried, in bytes.
const MinCache = 64 << 10

// Advice is what a store's traffic says about its settings.
type Advice struct {
	Now    Prediction `json:"now"`    // with the settings in force
	Memory int64      `json:"memory"` // limit of the recommendation

	All   []Prediction `json:"all"`   // by filter, then by cache
	Front []Prediction `json:"front"` // of them, those that no other one beats at its memory
	Curve []Prediction `json:"curve"` // other caches, with the filters of now: the miss-ratio curve
	Worth []Worth      `json:"worth"` // what more or less memory would buy
	Best  Prediction   `json:"best"`  // the cheapest within the limit

	Styles []Style `json:"styles"` // of compaction

	Recommendation Recommendation `json:"recommendation"`
	Sample         Sample         `json:"sample"`
	Unknown        []string       `json:"unknown"` // what the model cannot know here
	Prices         Prices         `json:"prices"`
}

// A Worth is what a change of memory buys, at the margin.
type Worth struct {
	What  string  `json:"what"`  // filter or cache
	From  string  `json:"from"`  // a spec, or a size
	To    string  `json:"to"`    //
	Bytes int64   `json:"bytes"` // more; negative: less
	Reads float64 `json:"reads"` // device reads more for a million lookups; negative: fewer
	Nanos float64 `json:"ns"`    // per operation
	// ReadsPerMiB are the device reads that a MiB saves in a million lookups, at this margin.
	ReadsPerMiB float64 `json:"reads_per_mib"`
}

// Advise predicts what there is to choose from, and chooses. It takes some seconds, and ends
// early with the context's error.
func (m *Model) Advise(ctx context.Context, c Config) (*Advice, error) {
	s := m.store
	a := &Advice{Prices: m.prices, Sample: m.sample(), Unknown: m.unknown()}
	caches := c.Caches
	if caches == nil {
		caches = usualCaches(s)
	}
	a.Now = m.Predict(Setting{Remembered: s.Remembered}, s.Cache)[0]
	a.Memory = cmp.Or(c.Memory, a.Now.Memory)
	for _, o := range m.settings(c.Filters) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if a.Curve != nil && !s.filtersOf(&o).known {
			continue
		}
		all := m.predictWithin(a.Memory, o, caches)
		if a.Curve == nil {
			a.Curve = slices.Clone(all)
			slices.SortFunc(a.Curve, func(x, y Prediction) int { return cmp.Compare(x.Cache, y.Cache) })
		}
		a.All = append(a.All, all...)
	}
	a.All = append(a.All, a.Now)
	tried := []Setting{{Remembered: s.Remembered}}
	if best := a.cheapest().Setting; best.filters() != tried[0].filters() {
		tried = append(tried, best)
	}
	for _, size := range s.blockSizes() {
		resized := m.withBlocks(size)
		for _, o := range tried {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			o.BlockSize = size
			a.All = append(a.All, resized.predictWithin(a.Memory, o, caches)...)
		}
	}
	a.Front = Front(a.All, (*Prediction).Score)
	a.Worth, a.Styles = worth(a), m.styles()
	a.choose(s)
	return a, nil
}

// predictWithin predicts a setting with each cache, and with the one that takes what memory is left.
func (m *Model) predictWithin(memory int64, o Setting, caches []int64) []Prediction {
	f := m.store.filtersOf(&o)
	caches = slices.Clone(caches)
	if rest := memory - f.bytes - o.Remembered - m.moreIndex; rest >= MinCache && !slices.Contains(caches, rest) {
		caches = append(caches, rest)
	}
	caches = slices.DeleteFunc(caches, func(cache int64) bool { return cache < leastBlocks*o.BlockSize })
	return m.Predict(o, caches...)
}

// leastBlocks is how many blocks a cache must have room for: kv.Open refuses less.
const leastBlocks = 8

// usualCaches returns what is tried of a store's cache, in bytes.
func usualCaches(s *Store) []int64 {
	var caches []int64
	for _, f := range cacheFactors {
		caches = append(caches, max(MinCache, int64(f*float64(s.Cache))))
	}
	return slices.Compact(caches)
}

// budgeted are the filters with bytes that are also tried as a budget.
var budgeted = []string{"blocked:8", "blocked:10", "blocked:12", "ribbon:6", "ribbon:8", "ribbon:10"}

// settings returns the filters that are tried: first those that are there, then others, and budgets of as
// many bytes if there is more than one run to share them.
func (m *Model) settings(specs []string) []Setting {
	s := m.store
	usual := specs == nil
	if usual {
		specs = DefaultFilters
		if p, err := filterpolicy.Parse(s.Filter); err == nil && !slices.Contains(specs, p.String()) {
			specs = append(slices.Clone(specs), p.String())
		}
	}
	all := []Setting{{Remembered: s.Remembered}}
	for _, spec := range specs {
		o := Setting{Filter: spec, Remembered: s.Remembered}
		all = append(all, o)
		// A tiered store cannot be made to spend more than half of a budget (docs/study.md).
		if s.Runs < 2 || s.Compaction == tiered || usual && !slices.Contains(budgeted, spec) {
			continue
		}
		f := s.filtersOf(&o)
		if o.Budget = f.bytes; o.Budget > 0 && canSpread(spec) {
			all = append(all, o)
		}
	}
	if !usual || !m.emptyScans() {
		return all
	}
	own, budget := s.Filter, s.Budget
	if _, err := filterpolicy.Parse(own); err != nil {
		own, budget = "", 0 // the application's own: files keep theirs
	}
	for _, ranges := range usualRanges {
		if _, err := filterpolicy.ParseRange(ranges); err == nil {
			all = append(all, Setting{Filter: own, Budget: budget, Ranges: ranges, Remembered: s.Remembered})
		}
	}
	return all
}

// usualRanges are the range filters that are tried, if they may save reads of scans.
var usualRanges = []string{"cut:4", "cut:6", "cut:8"}

// emptyScans reports whether scans with bounds reach files above the last run that have nothing for them.
func (m *Model) emptyScans() bool {
	for i := range m.trace.Scans {
		s := &m.trace.Scans[i]
		for _, p := range s.Parts {
			if s.Bounded && p.Empty && m.store.Files[p.File].Run < m.store.Runs-1 {
				return true
			}
		}
	}
	return false
}

// canSpread reports whether the bits of a family can be chosen.
func canSpread(spec string) bool {
	p, err := filterpolicy.Parse(spec)
	return err == nil && filterpolicy.Spread(p, 1<<20, []uint64{1 << 20})[0] != 0
}

// worth compares the settings of now with their neighbours.
func worth(a *Advice) []Worth {
	var all []Worth
	add := func(what string, p *Prediction, name func(*Prediction) string) {
		if p == nil {
			return
		}
		w := Worth{What: what, From: name(&a.Now), To: name(p), Bytes: p.Memory - a.Now.Memory,
			Reads: 1e6 * (p.All.Reads - a.Now.All.Reads), Nanos: p.Score() - a.Now.Score()}
		w.ReadsPerMiB = -w.Reads / (float64(w.Bytes) / (1 << 20))
		all = append(all, w)
	}
	size := func(p *Prediction) string { return formatSize(p.Cache) }
	filter := func(p *Prediction) string { return cmp.Or(p.Filter, "as it is") }
	var filters []Prediction
	for _, p := range a.All {
		if p.Cache == a.Now.Cache && p.BlockSize == 0 && p.Budget == 0 && p.Ranges == "" && p.Filter != "" {
			filters = append(filters, p)
		}
	}
	filters = Front(filters, (*Prediction).Score)
	for _, next := range []func([]Prediction, *Prediction) *Prediction{below, above} {
		add("cache", next(a.Curve, &a.Now), size)
		add("filter", next(filters, &a.Now), filter)
	}
	return all
}

// nearby is how much of its memory a neighbour must differ by, so that rounding is no difference.
const nearby = 0.02

// below returns the prediction with most memory of those with less than p.
func below(all []Prediction, p *Prediction) (best *Prediction) {
	for i := range all {
		less := float64(p.Memory - all[i].Memory)
		if less > nearby*float64(min(p.FilterBytes, p.Cache)) && (best == nil || all[i].Memory > best.Memory) {
			best = &all[i]
		}
	}
	return best
}

// above returns the prediction with least memory of those with more than p.
func above(all []Prediction, p *Prediction) (best *Prediction) {
	for i := range all {
		more := float64(all[i].Memory - p.Memory)
		if more > nearby*float64(min(p.FilterBytes, p.Cache)) && (best == nil || all[i].Memory < best.Memory) {
			best = &all[i]
		}
	}
	return best
}
