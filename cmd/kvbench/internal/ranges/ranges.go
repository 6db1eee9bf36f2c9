// Package ranges measures range filters on their own: what they cost to build and to ask, how
// much space they take, and how many empty ranges they let pass, by the kind of keys, the
// width of the range and how near behind a key it begins.
package ranges

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to measure.
type Config struct {
	bench.Probing
	Sets     []string // names of Generated, or paths of files with a key per line, half of which are held out
	Filters  []string // specs of filterpolicy.ParseRange
	Argv     []string
	Progress *progress.Reporter
}

func (c *Config) policies() ([]filterpolicy.RangePolicy, error) {
	if err := cmp.Or(c.Check(2, 1<<27), bench.CheckTwice("--sets", c.Sets)); err != nil {
		return nil, err
	}
	switch {
	case len(c.Sets) == 0:
		return nil, bench.Usagef("--sets: no keys to measure with")
	case len(c.Filters) == 0:
		return nil, bench.Usagef("--filter: nothing to measure")
	}
	return bench.Specs(c.Filters, filterpolicy.ParseRange)
}

// Run measures every filter on every set of keys. A key that a filter denies is a wrong answer and ends the run.
func Run(ctx context.Context, c *Config) (*tidy.Result, error) {
	start := time.Now()
	policies, err := c.policies()
	if err != nil {
		return nil, err
	}
	sets, err := c.keysets()
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Range filters on their own: space, errors, time; up to %s empty ranges of each kind, "+
		"medians of %s, seed %d", bench.Count(c.Probes), bench.Times(c.Repetitions, "repetition"), c.Seed)
	r := tidy.New("ranges", about, c.Probing, environ.Capture(c.Argv, "."))
	for _, make := range sets {
		s, err := make()
		if err != nil {
			return nil, err
		}
		m := newMeter(c, s)
		r.Add(m.cell(), "key-size", "bytes", s.meanLen())
		for _, p := range policies {
			phase := c.Progress.Start(fmt.Sprintf("%s, %d keys: %s", s.name, len(s.list), p), 0, "")
			err := m.measure(ctx, p, r)
			phase.Done()
			if err != nil {
				return nil, err
			}
		}
	}
	r.WallSeconds = time.Since(start).Seconds()
	return r, nil
}

// keysets returns what makes each set of keys, so that one is in memory at a time.
func (c *Config) keysets() (list []func() (*keyset, error), err error) {
	for _, name := range c.Sets {
		generate, ok := generators[name]
		switch {
		case ok:
			for _, n := range c.Keys {
				list = append(list, func() (*keyset, error) {
					return generate(rand.New(rand.NewPCG(c.Seed, uint64(n))), n), nil
				})
			}
		case strings.ContainsAny(name, "./"):
			list = append(list, func() (*keyset, error) { return fileKeys(name, c.Seed) })
		default:
			return nil, bench.Usagef("--sets %s: want %s, or the path of a file with a key per line (./%s)", name,
				strings.Join(Generated(), ", "), name)
		}
	}
	return list, nil
}

// A meter holds the keys and ranges that all filters of a table are measured with.
type meter struct {
	c     *Config
	set   *keyset
	asked []asked
}

// An asked is the ranges of one kind, bound by bound in one piece of memory, as a query reads them.
type asked struct {
	kind   string
	bounds [][2][]byte
}

// tries is how often a range is drawn until it is an empty one; kinds that give few have fewer.
const tries = 20

func newMeter(c *Config, s *keyset) *meter {
	m := &meter{c: c, set: s}
	for i, k := range s.kinds {
		r := rand.New(rand.NewPCG(c.Seed, uint64(i)))
		a := asked{kind: k.name}
		for try := 0; try < tries*c.Probes && len(a.bounds) < c.Probes; try++ {
			lo, hi := k.draw(r)
			if bytes.Compare(lo, hi) < 0 && !s.within(lo, hi) {
				a.bounds = append(a.bounds, together(lo, hi))
			}
		}
		m.asked = append(m.asked, a)
	}
	return m
}

// together returns copies of both bounds that lie side by side.
func together(lo, hi []byte) [2][]byte {
	both := append(append(make([]byte, 0, len(lo)+len(hi)), lo...), hi...)
	return [2][]byte{both[:len(lo):len(lo)], both[len(lo):]}
}

// cell is that of the keys, with other settings.
func (m *meter) cell(settings ...any) tidy.Cell {
	return tidy.Of("set", m.set.name, "keys", len(m.set.list)).With(settings...)
}

func (m *meter) measure(ctx context.Context, p filterpolicy.RangePolicy, r *tidy.Result) error {
	of := m.cell("filter", p)
	if e := filterpolicy.ExpectedRange(p, len(m.set.list)); e.OK {
		r.Add(of, "theory-size", "bits/key", e.BitsPerKey)
		r.Add(of, "theory-rate", "", e.FPR)
	}
	var builds, points []float64
	times, passed := make([][]float64, len(m.asked)), make([]int, len(m.asked))
	size := 0
	for range m.c.Repetitions {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		data, ns, ok := m.build(p)
		if !ok {
			return fmt.Errorf("%s declines to make a filter of %d keys", p, len(m.set.list))
		}
		f, err := filterpolicy.DecodeRange(p.Name(), data)
		if err != nil {
			return err
		}
		if err := m.check(p.String(), f); err != nil {
			return err
		}
		size = len(data)
		builds, points = append(builds, ns), append(points, m.buildPoints())
		for i := range m.asked {
			var ns float64
			passed[i], ns = ask(f, &m.asked[i])
			times[i] = append(times[i], ns)
		}
	}
	r.Add(of, "size", "bits/key", 8*float64(size)/float64(len(m.set.list)))
	r.Add(of, "build", "ns/key", builds...)
	r.Add(of, "point-build", "ns/key", points...) // of blocked:10 for the same keys, their hashes included
	for i, a := range m.asked {
		of := m.cell("filter", p, "ranges", a.kind)
		r.Add(of, "asked", "", float64(len(a.bounds)))
		if len(a.bounds) > 0 {
			r.AddRate(of, "rate", passed[i], len(a.bounds))
			r.Add(of, "query", "ns", times[i]...)
		}
	}
	return nil
}

func (m *meter) build(p filterpolicy.RangePolicy) (data []byte, ns float64, ok bool) {
	b := p.NewRangeBuilder()
	runtime.GC()
	start := time.Now()
	for _, key := range m.set.list {
		b.AddKey(key)
	}
	data, ok = b.Finish(nil)
	return data, float64(time.Since(start)) / float64(len(m.set.list)), ok
}

// buildPoints returns the time per key of the filter for lookups that stores have by default, for comparison.
func (m *meter) buildPoints() float64 {
	p, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		panic(err) // it is a spec
	}
	b := p.NewBuilder()
	runtime.GC()
	start := time.Now()
	for _, key := range m.set.list {
		b.AddHash(filterpolicy.Hash(key))
	}
	b.Finish(nil)
	return float64(time.Since(start)) / float64(len(m.set.list))
}

// check asks for every key, by the narrowest range that has it.
func (m *meter) check(name string, f filterpolicy.RangeFilter) error {
	var hi []byte
	for i, key := range m.set.list {
		hi = append(append(hi[:0], key...), 0)
		if !f.MayContainRange(key, hi) {
			return fmt.Errorf("%w: %s denies key %d of %d, which was added (%q)", bench.ErrWrongAnswer, name, i,
				len(m.set.list), key)
		}
	}
	return nil
}

// batch is how many queries are timed together: so few that most batches are not interrupted.
const batch = 250

// ask asks for all ranges of a kind, and returns how many pass, and the time of a query: the median of the
// batches.
func ask(f filterpolicy.RangeFilter, a *asked) (passed int, ns float64) {
	var times []float64
	for part := range slices.Chunk(a.bounds, batch) {
		start := time.Now()
		for i := range part {
			if f.MayContainRange(part[i][0], part[i][1]) {
				passed++
			}
		}
		times = append(times, float64(time.Since(start))/float64(len(part)))
	}
	if len(times) == 0 {
		return 0, 0
	}
	return passed, measure.Median(times)
}
