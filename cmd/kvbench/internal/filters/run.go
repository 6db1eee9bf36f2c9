package filters

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Run measures every filter at every number of keys. A key that a filter denies is
// a wrong answer and ends the run.
func Run(ctx context.Context, c *Config) (*Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	start := time.Now()
	var all []candidate
	for _, spec := range c.Filters {
		cand, err := policyCandidate(spec)
		if err != nil {
			return nil, err
		}
		all = append(all, cand)
	}
	if c.Libraries {
		for _, l := range libraries {
			l.library = true
			all = append(all, l)
		}
	}
	r := &Result{Schema: Schema, Environment: environ.Capture(c.Argv, "."), Settings: c.Settings}
	for _, n := range c.Keys {
		t := Table{Keys: n}
		m := newMeter(c, n)
		for _, cand := range all {
			phase := c.Progress.Start(fmt.Sprintf("%s, %d keys", cand.name, n), 0, "")
			row, err := m.row(ctx, cand)
			phase.Done()
			if err != nil {
				return nil, err
			}
			t.Rows = append(t.Rows, row)
		}
		compare(t.Rows)
		r.Tables = append(r.Tables, t)
	}
	r.WallSeconds = time.Since(start).Seconds()
	return r, nil
}

// compare fills in how the rows compare with Pebble's default filter.
func compare(rows []Row) {
	for _, base := range rows {
		if base.Name != libraries[0].name {
			continue
		}
		for i := range rows {
			rows[i].FasterThanPebble = base.AbsentNs / rows[i].AbsentNs
		}
	}
}

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

// row measures one candidate.
func (m *meter) row(ctx context.Context, cand candidate) (Row, error) {
	n := len(m.present)
	row := Row{Name: cand.name, Library: cand.library}
	times := map[*float64][]float64{}
	took := func(into *float64, ns float64) { times[into] = append(times[into], ns) }
	small := m.present[:min(SmallKeys, n)]
	for range m.c.Repetitions {
		if ctx.Err() != nil {
			return row, ctx.Err()
		}
		s, ns, bytes, err := timeBuild(cand, m.present)
		if err != nil {
			return row, err
		}
		took(&row.BuildNs, ns)
		row.BuildBytes, row.BitsPerKey = bytes, 8*float64(s.bytes)/float64(n)
		took(&row.PresentNs, timeProbes(s, m.order))
		took(&row.AbsentNs, timeProbes(s, m.absent))
		if err := m.check(cand, s, &row); err != nil {
			return row, err
		}
		if s, _, _, err = timeBuild(cand, small); err != nil {
			return row, err
		}
		took(&row.SmallPresentNs, timeProbes(s, repeat(small, len(m.order))))
		took(&row.SmallAbsentNs, timeProbes(s, m.absent))
		if ns, err = m.many(cand); err != nil {
			return row, err
		}
		took(&row.ManyAbsentNs, ns)
	}
	for into, list := range times {
		*into = measure.Median(list)
	}
	if cand.theory != nil {
		if bits, fpr, ok := cand.theory(n); ok {
			row.TheoryBits, row.TheoryFPR = bits, fpr
		}
	}
	return row, nil
}

// check asks for every key that is in the filter, and counts the absent ones that
// it lets pass.
func (m *meter) check(cand candidate, s set, row *Row) error {
	for i, h := range m.present {
		if !s.contains(h) {
			return fmt.Errorf("%w: %s denies key %d of %d, which was added (hash %#x)", bench.ErrWrongAnswer,
				cand.name, i, len(m.present), h)
		}
	}
	passed := 0
	for _, h := range m.absent {
		if s.contains(h) {
			passed++
		}
	}
	trials := float64(len(m.absent))
	row.FPR = float64(passed) / trials
	row.FPRLow, row.FPRHigh = measure.Wilson(row.FPR, trials)
	return nil
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

// repeat returns n hashes that go round and round.
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
