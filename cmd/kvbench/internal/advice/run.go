package advice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// Schema names the form of a Result in JSON.
const Schema = "kvbench.advise/v1"

// A Config says what to ask.
type Config struct {
	Store, Trace string
	Cache        int64         // of the store; 0: what it was last opened with
	Memory       int64         // that filters and cache may take; 0: as much as now
	Filters      []string      // that are tried; nil: the usual ones
	Lookups      int           // of the trace, at most
	Device       time.Duration // what a read of the device takes; 0: as measured here
	Verify       bool          // measure the recommendation on a copy
	Sweep        bool          // and every other filter
	Dir          string        // where copies are made; empty: where the system has temporary files
	Argv         []string
	Progress     *progress.Reporter
}

// A Result is what was found.
type Result struct {
	Schema      string              `json:"schema"`
	Environment environ.Environment `json:"environment"`
	Store       string              `json:"store"`
	Trace       string              `json:"trace"`
	Shape       []Run               `json:"runs"`
	Advice      *advise.Advice      `json:"advice"`
	Checks      []Check             `json:"checks,omitempty"`
	Verdict     *Verdict            `json:"verdict,omitempty"`
	Seconds     float64             `json:"seconds"`
}

// A Run is a sorted run of the store, the youngest first.
type Run struct {
	Level       int    `json:"level"`
	Files       int    `json:"files"`
	Keys        uint64 `json:"keys"`
	Blocks      uint64 `json:"blocks"`
	Bytes       int64  `json:"bytes"`
	FilterBytes int64  `json:"filter_bytes"`
	IndexBytes  int64  `json:"index_bytes"`
	Filter      string `json:"filter"` // of its first file
}

// MaxLookups is how many lookups of a trace are taken if nothing is said.
const MaxLookups = 2_000_000

// Advise reads a store and a trace, changes neither, and predicts.
func Advise(ctx context.Context, c Config) (r *Result, err error) {
	began := time.Now()
	a, err := readAsked(ctx, c.Trace, cmp.Or(c.Lookups, MaxLookups))
	if err != nil {
		return nil, err
	}
	if len(a.trace.Lookups)+len(a.trace.Scans) == 0 {
		return nil, bench.Usagef("advise: %s has neither lookups nor scans whose bounds are known", c.Trace)
	}
	if (c.Verify || c.Sweep) && a.hashes {
		return nil, bench.Usagef("--verify: %s has hashes in place of keys, and cannot be replayed on this store; "+
			"record one with lookuptrace.Options.Keys", c.Trace)
	}
	s, err := openStore(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if c.Cache > 0 {
		s.options.CacheSize, s.shape.Cache = c.Cache, c.Cache
	}
	phase := c.Progress.Start("find the blocks", len(a.trace.Keys)+len(a.trace.Scans), "keys and scans")
	err = a.locate(ctx, s, phase.Add)
	phase.Done()
	if err != nil {
		return nil, err
	}
	prices, err := s.prices(a, append(slices.Clone(advise.DefaultFilters), append(c.Filters, s.shape.Filter)...))
	if err != nil {
		return nil, err
	}
	if c.Device > 0 {
		prices = prices.Device(float64(c.Device.Nanoseconds()))
		prices.From += fmt.Sprintf("; a device read is said to take %s", c.Device)
	}
	r = &Result{Schema: Schema, Environment: environ.Capture(c.Argv, c.Store), Store: c.Store, Trace: c.Trace,
		Shape: s.runs()}
	model := advise.New(&s.shape, a.trace, prices)
	if r.Advice, err = model.Advise(ctx, advise.Config{Filters: c.Filters, Memory: c.Memory}); err != nil {
		return nil, err
	}
	if a.vague > 0 {
		r.Advice.Unknown = append(r.Advice.Unknown, fmt.Sprintf("%d scans whose bounds are not known", a.vague))
	}
	if c.Verify || c.Sweep {
		v := &verification{store: s, asked: a, model: model, advice: r.Advice, prices: prices, progress: c.Progress}
		if err := r.verify(ctx, v, &c); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// verify measures what the configuration asks for.
func (r *Result) verify(ctx context.Context, v *verification, c *Config) (err error) {
	dir, remove, err := bench.TempDir(c.Dir, "advise")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	v.dir = dir
	if r.Checks, err = v.check(ctx, r.groups(c.Sweep)); err == nil {
		r.Verdict = v.verdict(r.Checks)
	}
	return err
}

// groups returns what is to be measured: the recommendation, and in a sweep every filter with the
// cache of now and with the one that takes what the limit of memory leaves.
func (r *Result) groups(sweep bool) []group {
	a := r.Advice
	var all []group
	add := func(p *advise.Prediction) {
		if p.Setting == a.Now.Setting {
			return // the store itself
		}
		o := p.Setting
		o.Cache = 0
		i := slices.IndexFunc(all, func(g group) bool { return g.setting == o })
		if i < 0 {
			i = len(all)
			all = append(all, group{setting: o})
		}
		if !slices.Contains(all[i].caches, p.Cache) {
			all[i].caches = append(all[i].caches, p.Cache)
		}
	}
	add(&a.Best)
	if !sweep {
		return all
	}
	for i := range a.All {
		p := &a.All[i]
		if p.Cache == a.Now.Cache || p.Memory == a.Memory {
			add(p)
		}
	}
	return all
}

// runs sums the files up.
func (s *store) runs() []Run {
	all := make([]Run, s.shape.Runs)
	for _, f := range s.shape.Files {
		r := &all[f.Run]
		if r.Files++; r.Files == 1 {
			r.Level, r.Filter = f.Level, cmp.Or(f.Filter, "none")
		}
		r.Keys += f.Keys
		r.Blocks += f.Blocks
		r.Bytes += f.Bytes
		r.FilterBytes += f.FilterBytes
		r.IndexBytes += f.IndexBytes
	}
	return all
}
