// Package filters measures filter families on their own: what they cost to build
// and to ask, how much space they take, and how often they err, next to the
// libraries that a Go programmer would otherwise pick, on the same hashes in the
// same run.
package filters

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to measure.
type Config struct {
	bench.Probing
	Filters   []string // specs of filterpolicy.Parse
	Libraries bool     // other projects' filters too
	Argv      []string
	Progress  *progress.Reporter
}

// SmallKeys is the number of keys of the filters that fit the CPU's cache.
const SmallKeys = 10_000

// ManyFilters is how many files a store with much in its young levels may ask.
const ManyFilters = 30

func (c *Config) candidates() (all []candidate, err error) {
	if err := c.Check(1, 1<<30); err != nil {
		return nil, err
	}
	policies, err := bench.Specs(c.Filters, filterpolicy.Parse)
	for _, p := range policies {
		all = append(all, policyCandidate(p))
	}
	if c.Libraries {
		all = append(all, libraries...)
	}
	if err == nil && len(all) == 0 {
		err = bench.Usagef("--filter: nothing to measure")
	}
	return all, err
}

// Run measures every filter at every number of keys. A key that a filter denies is
// a wrong answer and ends the run.
func Run(ctx context.Context, c *Config) (*tidy.Result, error) {
	start := time.Now()
	all, err := c.candidates()
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Filters on their own: space, errors, time; %s absent probes, medians of %s, seed %d",
		bench.Count(c.Probes), bench.Times(c.Repetitions, "repetition"), c.Seed)
	r := tidy.New("filters", about, c.Probing, environ.Capture(c.Argv, "."))
	for _, n := range c.Keys {
		m := newMeter(c, n)
		for _, cand := range all {
			phase := c.Progress.Start(fmt.Sprintf("%s, %d keys", cand.name, n), 0, "")
			err := m.measure(ctx, cand, r)
			phase.Done()
			if err != nil {
				return nil, err
			}
		}
	}
	r.WallSeconds = time.Since(start).Seconds()
	return r, nil
}

// Pebble is Pebble's default filter, with which others are compared.
var Pebble = libraries[0].name

// A meter holds the hashes that all candidates of a table are measured with.
type meter struct {
	c       *Config
	present []uint64
	order   []uint64 // present keys in a random order, as many as there are probes
	absent  []uint64
}

func newMeter(c *Config, n int) *meter {
	m := &meter{c: c, present: make([]uint64, n), order: make([]uint64, c.Probes), absent: make([]uint64, c.Probes)}
	// A bijection of distinct numbers: no two hashes are equal, and an absent one
	// is never present.
	for i := range m.present {
		m.present[i] = mix(c.Seed, uint64(i))
	}
	for i := range m.absent {
		m.absent[i] = mix(c.Seed, uint64(n+i))
	}
	for i := range m.order {
		m.order[i] = m.present[mix(c.Seed+1, uint64(i))%uint64(n)]
	}
	return m
}

// mix is splitmix64's finalizer: a bijection for each seed.
func mix(seed, x uint64) uint64 {
	x = (x + seed*0x9e3779b97f4a7c15 + 1) * 0xbf58476d1ce4e5b9
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// measure adds the rows of one candidate. Times are nanoseconds of a probe, except that of build.
func (m *meter) measure(ctx context.Context, cand candidate, r *tidy.Result) error {
	n := len(m.present)
	of := tidy.Of("keys", n, "filter", cand.name)
	small := m.present[:min(SmallKeys, n)]
	for rep := range m.c.Repetitions {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		add := func(metric, unit string, x float64) { r.Append(of, metric, unit, x) }
		s, ns, bytes, err := timeBuild(cand, m.present)
		if err != nil {
			return err
		}
		add("build", "ns/key", ns)
		add("build-bytes", "bytes/key", bytes) // allocated, the filter included
		add("present", "ns", timeProbes(s, m.order))
		add("absent", "ns", timeProbes(s, m.absent))
		passed, err := m.check(cand, s)
		if err != nil {
			return err
		}
		if rep == 0 {
			add("size", "bits/key", 8*float64(s.bytes)/float64(n))
			r.AddRate(of, "fpr", passed, len(m.absent))
		}
		if s, _, _, err = timeBuild(cand, small); err != nil {
			return err
		}
		add("small-present", "ns", timeProbes(s, repeat(small, len(m.order))))
		add("small-absent", "ns", timeProbes(s, m.absent))
		if ns, err = m.many(cand); err != nil {
			return err
		}
		add("many-absent", "ns", ns) // one lookup in ManyFilters filters in turn, the keys shared among them
	}
	if cand.theory != nil {
		if bits, fpr, ok := cand.theory(n); ok {
			r.Add(of, "theory-size", "bits/key", bits)
			r.Add(of, "theory-fpr", "", fpr)
		}
	}
	return nil
}

// check asks for every key that is in the filter, and returns how many absent ones it lets pass.
func (m *meter) check(cand candidate, s set) (passed int, err error) {
	for i, h := range m.present {
		if !s.contains(h) {
			return 0, fmt.Errorf("%w: %s denies key %d of %d, which was added (hash %#x)", bench.ErrWrongAnswer,
				cand.name, i, len(m.present), h)
		}
	}
	for _, h := range m.absent {
		if s.contains(h) {
			passed++
		}
	}
	return passed, nil
}

// timeBuild builds a filter and returns what it cost per key: nanoseconds, and
// bytes allocated.
func timeBuild(cand candidate, hashes []uint64) (s set, ns, bytes float64, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	s, err = cand.build(hashes)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	n := float64(len(hashes))
	return s, float64(took) / n, float64(after.TotalAlloc-before.TotalAlloc) / n, err
}

// timeProbes returns nanoseconds per probe.
func timeProbes(s set, hashes []uint64) float64 {
	passed := 0
	start := time.Now()
	for _, h := range hashes {
		if s.contains(h) {
			passed++
		}
	}
	took := time.Since(start)
	runtime.KeepAlive(passed) // the answers are asked for
	return float64(took) / float64(len(hashes))
}

func repeat(hashes []uint64, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = hashes[i%len(hashes)]
	}
	return out
}

// many returns nanoseconds per lookup of an absent key in ManyFilters filters, one
// after the other, as in a store with many files.
func (m *meter) many(cand candidate) (float64, error) {
	per := max(len(m.present)/ManyFilters, 1)
	var sets []set
	for from := 0; from+per <= len(m.present) && len(sets) < ManyFilters; from += per {
		s, err := cand.build(m.present[from : from+per])
		if err != nil {
			return 0, err
		}
		sets = append(sets, s)
	}
	lookups := m.absent[:max(len(m.absent)/ManyFilters, 1)]
	passed := 0
	start := time.Now()
	for _, h := range lookups {
		for i := range sets {
			if sets[i].contains(h) {
				passed++
			}
		}
	}
	took := time.Since(start)
	runtime.KeepAlive(passed) // the answers are asked for
	return float64(took) / float64(len(lookups)), nil
}
