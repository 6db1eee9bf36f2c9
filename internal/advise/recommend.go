package advise

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/bytesize"
)

// A Recommendation is one setting, and why.
type Recommendation struct {
	Keep       bool       `json:"keep"` // the settings in force are as good
	Setting    Prediction `json:"setting"`
	Words      string     `json:"words"`
	Options    string     `json:"options"` // lines that kv.ParseOptions takes; empty: nothing to change
	Confidence string     `json:"confidence"`
	Why        string     `json:"why"`  // of the confidence
	Gain       float64    `json:"gain"` // part of the cost of an operation that is saved
	// Frugal is the setting with least memory that costs no more than now; zero if none
	// takes a tenth less.
	Frugal *Prediction `json:"frugal,omitempty"`
}

// What is worth a change, as parts of cost and of memory.
const (
	worthAChange = 0.03
	asGood       = 0.01
	muchLess     = 0.1
)

// choose picks the cheapest setting within the limit, and says whether it is worth a change.
func (a *Advice) choose(s *Store) {
	a.Best = a.cheapest()
	r := &a.Recommendation
	r.Setting = a.Best
	if now := a.Now.Score(); now > 0 {
		r.Gain = 1 - a.Best.Score()/now
	}
	r.Frugal = a.frugal()
	r.Confidence, r.Why = a.confidence()
	if r.Gain < worthAChange && a.Now.Memory <= a.Memory {
		r.Keep, r.Setting, r.Gain = true, a.Now, 0
		r.Words = fmt.Sprintf("Keep the settings: none that takes %s or less saves %.0f %% of what an operation costs.",
			formatSize(a.Memory), 100*worthAChange)
		if r.Frugal != nil {
			r.Words += fmt.Sprintf(" %s would cost as much as now and take %s less.", r.Frugal.Name(),
				formatSize(a.Now.Memory-r.Frugal.Memory))
		}
		return
	}
	r.Options = a.Best.OptionsText(s)
	r.Words = fmt.Sprintf("Use %s: %s of filters and cache in place of %s, and per lookup %.3g blocks in place of "+
		"%.3g, %.3g device reads in place of %.3g, %.0f ns in place of %.0f.", a.Best.Name(),
		formatSize(a.Best.Memory), formatSize(a.Now.Memory), a.Best.All.Blocks, a.Now.All.Blocks, a.Best.All.Reads,
		a.Now.All.Reads, a.Best.All.Nanos, a.Now.All.Nanos)
}

// cheapest returns the cheapest setting within the limit.
func (a *Advice) cheapest() Prediction {
	best := a.Now
	for _, p := range a.All {
		within := p.Memory <= a.Memory+a.Memory/1000
		if within && (best.Memory > a.Memory || p.Score() < best.Score()) {
			best = p
		}
	}
	return best
}

// frugal returns the setting with least memory that costs no more than now.
func (a *Advice) frugal() *Prediction {
	var best *Prediction
	for i := range a.All {
		p := &a.All[i]
		if p.Score() <= a.Now.Score()*(1+asGood) && p.Reads() <= a.Now.Reads()*(1+asGood) &&
			(best == nil || p.Memory < best.Memory) {
			best = p
		}
	}
	if best == nil || float64(best.Memory) > (1-muchLess)*float64(a.Now.Memory) {
		return nil
	}
	return best
}

// Confidence in words.
const (
	high   = "high"
	medium = "medium"
	low    = "low"
)

// confidence says how much the recommendation can be trusted, and what limits it.
func (a *Advice) confidence() (word, why string) {
	s := &a.Sample
	sure := (a.Best.All.High - a.Best.All.Low) / 2 / max(a.Best.All.Blocks, 1e-9)
	why = fmt.Sprintf("%d lookups of %d keys were counted; blocks per lookup are ±%.1f %% by the luck of filters",
		s.Counted, s.Keys, 100*sure)
	switch {
	case s.Counted < fewLookups || 4*s.Changed > s.Lookups || sure > 0.25:
		return low, why
	case s.Pathless > 0 || s.OneIn > 1 || float64(s.Changed) > manyChanged*float64(s.Lookups) || sure > 0.05:
		return medium, why
	}
	return high, why
}

// Name says a setting in words.
func (p *Prediction) Name() string {
	name := cmp.Or(p.Filter, "the filters that are there")
	if p.Filter == "none" {
		name = "no filters"
	}
	if p.Budget > 0 {
		family, _, _ := strings.Cut(p.Filter, ":")
		name = fmt.Sprintf("%s with a budget of %s", family, formatSize(p.Budget))
	}
	if p.Ranges != "" {
		name += ", range filters " + p.Ranges
	}
	if p.BlockSize > 0 {
		name += ", blocks of " + formatSize(p.BlockSize)
	}
	return fmt.Sprintf("%s and a cache of %s", name, formatSize(p.Cache))
}

// OptionsText returns the lines of options that make the setting of a store's.
func (p *Prediction) OptionsText(s *Store) string {
	var b strings.Builder
	if p.Filter != "" {
		fmt.Fprintf(&b, "Filter = %s\n", p.Filter)
		if p.Budget > 0 || s.Budget > 0 {
			fmt.Fprintf(&b, "FilterBudget = %d\n", p.Budget)
		}
	}
	if p.Ranges != "" {
		fmt.Fprintf(&b, "RangeFilter = %s\n", p.Ranges)
	}
	if p.BlockSize > 0 {
		fmt.Fprintf(&b, "BlockSize = %d\n", p.BlockSize)
	}
	fmt.Fprintf(&b, "CacheSize = %d\n", p.Cache)
	return b.String()
}

// formatSize shows bytes for a reader.
func formatSize(n int64) string {
	switch f := float64(n); {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", f/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", f/(1<<10))
	}
	return bytesize.Format(n)
}
