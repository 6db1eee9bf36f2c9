package advise

import (
	"math"

	"github.com/siftkv/siftkv/internal/falsepositives"
)

// The errors of filters are drawn until enoughWrong blocks are read in vain, at most maxDraws
// times. A replay of all draws stays within maxTouches.
const (
	enoughWrong = 4000
	maxDraws    = 8
)

// Predict returns what the trace would cost under a setting with each of these caches.
func (m *Model) Predict(o Setting, caches ...int64) []Prediction {
	if o.BlockSize != m.blockSize {
		m = m.withBlocks(o.BlockSize)
	}
	f := m.store.filtersOf(&o)
	tallies := make([]tally, len(caches))
	draws, replayed, wrong, known := 0, 0, 0.0, 0.0
	for draws == 0 || draws < maxDraws && wrong > 0 && wrong < enoughWrong && replayed < maxTouches {
		all, t := m.stream(&f, int(o.Remembered/falsepositives.SlotBytes), uint64(draws))
		wrong, known = wrong+t.wrong, known+t.known
		for i, cache := range caches {
			m.replay(all, cache, &tallies[i])
		}
		draws++
		replayed += len(all)
	}
	spared := 0.0
	if known > 0 {
		spared = known / (known + wrong)
	}
	base := m.expect(&f, spared)
	out := make([]Prediction, len(caches))
	for i := range caches {
		out[i] = m.finish(o, caches[i], &f, base, &tallies[i], float64(draws))
	}
	return out
}

// counts are costs of found and absent keys and of scans without what depends on the cache.
type counts struct {
	costs [numKinds]Cost
	// squares is Σc² over keys that were asked for c times: what chance there is in which keys a
	// sample has.
	squares [numKinds]float64
}

// expect returns the blocks and probes that theory expects, of which a part of those read in
// vain are spared since that is remembered.
func (m *Model) expect(f *filters, spared float64) (all counts) {
	var variance, seconds [numKinds]float64 // of filters; Σ of squares of blocks by key
	for i := range m.trace.Keys {
		n := float64(m.stats[i].counted)
		if n == 0 {
			continue
		}
		kind := ofAbsent
		if m.trace.Keys[i].Found {
			kind = ofFound
		}
		blocks, probes, chance := m.expectKey(&m.trace.Keys[i], f, spared)
		c := &all.costs[kind]
		c.Operations += int(n)
		c.Blocks += n * blocks
		c.Probes += n * probes
		variance[kind] += n * n * chance
		all.squares[kind] += n * n
		seconds[kind] += n * n * blocks * blocks
	}
	for kind := range all.costs {
		c := &all.costs[kind]
		if c.Operations == 0 {
			continue
		}
		n := float64(c.Operations)
		c.Blocks, c.Probes = c.Blocks/n, c.Probes/n
		// If one key in some is recorded, another sample would have other blocks.
		drawn := max(0, seconds[kind]-all.squares[kind]*c.Blocks*c.Blocks) * (1 - 1/float64(m.oneIn))
		c.Low, c.High = around(c.Blocks, math.Sqrt(variance[kind]+drawn)/n)
		if kind == ofFound {
			c.Low = max(min(1, c.Blocks), c.Low)
		}
	}
	all.costs[ofScan] = m.expectScans(f)
	return all
}

// around returns the ends of the 95 % interval of a number that is not negative.
func around(x, sigma float64) (low, high float64) {
	const sigmas = 1.96
	return max(0, x-sigmas*sigma), x + sigmas*sigma
}

// expectKey returns the expected blocks and probes of a lookup of a key, and the variance of its
// blocks.
func (m *Model) expectKey(k *Key, f *filters, spared float64) (blocks, probes, variance float64) {
	if k.Pathless {
		return m.expectPathless(k, f, spared)
	}
	for _, s := range k.Path {
		rate := f.rates[s.File]
		if rate < 1 {
			probes++
		}
		if s.Present {
			blocks += 1 + float64(s.Again)
			continue
		}
		blocks += rate * (1 - spared)
		variance += rate * (1 - rate)
	}
	return blocks, probes, variance
}

// expectPathless is expectKey for a key that may be anywhere: averages of runs take the place of
// its path.
func (m *Model) expectPathless(k *Key, f *filters, spared float64) (blocks, probes, variance float64) {
	rates, asked := make([]float64, m.store.Runs), make([]float64, m.store.Runs)
	keys := m.store.runKeys()
	for i := range m.store.Files {
		file := &m.store.Files[i]
		share := float64(file.Keys) / float64(max(1, keys[file.Run]))
		rates[file.Run] += share * f.rates[i]
		if f.rates[i] < 1 {
			asked[file.Run] += share
		}
	}
	comes, left := 1.0, float64(m.store.Keys()) // chance that the lookup reaches a run; keys of that run and later ones
	for run, n := range keys {
		here := 0.0
		if k.Found && left > 0 {
			here = float64(n) / left
		}
		left -= float64(n)
		probes += comes * asked[run]
		blocks += comes * (here + (1-here)*rates[run]*(1-spared))
		variance += comes * rates[run] * (1 - rates[run])
		comes *= 1 - here
	}
	return blocks, probes, variance
}

// expectScans returns the blocks of scans, and how many range filters they ask.
func (m *Model) expectScans(f *filters) (c Cost) {
	from, variance := m.trace.warmMoment(m.warm), 0.0
	for i := range m.trace.Scans {
		s := &m.trace.Scans[i]
		if int64(s.At) < from {
			continue
		}
		c.Operations++
		for _, p := range s.Parts {
			rate := f.ranges[p.File]
			if !s.Bounded {
				rate = 1
			}
			if rate < 1 {
				c.Probes++
			}
			if !p.Empty {
				rate = 1
			}
			c.Blocks += rate * float64(p.Blocks)
			variance += rate * (1 - rate) * float64(p.Blocks) * float64(p.Blocks)
		}
	}
	if n := float64(c.Operations); n > 0 {
		c.Blocks, c.Probes = c.Blocks/n, c.Probes/n
		c.Low, c.High = around(c.Blocks, math.Sqrt(variance)/n)
	}
	return c
}

// replayedScans returns how many scans are counted in a replay.
func (m *Model) replayedScans() (n int) {
	from := m.trace.warmMoment(m.warm)
	for i := 0; i < len(m.trace.Scans); i += m.thin {
		if int64(m.trace.Scans[i].At) >= from {
			n++
		}
	}
	return n
}

// warmMoment returns when what is counted begins.
func (t *Trace) warmMoment(lookups int) int64 {
	if lookups >= len(t.Lookups) {
		return 0
	}
	return int64(t.Lookups[lookups].At)
}

// finish combines the counts of a replay with those that theory expects.
func (m *Model) finish(o Setting, cache int64, f *filters, all counts, t *tally, draws float64) Prediction {
	o.Cache, o.BlockSize = cache, m.blockSize
	p := Prediction{Setting: o, FilterBytes: f.bytes, Memory: f.bytes + cache + o.Remembered + m.moreIndex,
		Known: f.known}
	p.BitsPerKey = 8 * float64(f.bytes) / float64(max(1, m.store.Keys()))
	for kind := range all.costs {
		c := &all.costs[kind]
		n := float64(c.Operations) * draws * m.share * float64(m.likes)
		if kind == ofScan {
			n = float64(m.replayedScans()) * draws * m.share
		}
		if n > 0 {
			c.Reads, c.Bytes = min(t.reads[kind]/n, c.Blocks), t.bytes[kind]/n
		}
	}
	p.Found, p.Absent, p.Scans = all.costs[ofFound], all.costs[ofAbsent], all.costs[ofScan]
	p.All = m.together(&all)
	for _, c := range []*Cost{&p.All, &p.Found, &p.Absent} {
		c.Nanos = m.prices.Of(&p, c)
	}
	p.Scans.Nanos = m.prices.ofScan(&p.Scans)
	return p
}

// together returns the mean cost of lookups of both kinds.
func (m *Model) together(all *counts) Cost {
	x, y := &all.costs[ofFound], &all.costs[ofAbsent]
	n := x.Operations + y.Operations
	if n == 0 {
		return Cost{}
	}
	a, b := float64(x.Operations)/float64(n), float64(y.Operations)/float64(n)
	c := Cost{Operations: n, Blocks: a*x.Blocks + b*y.Blocks, Probes: a*x.Probes + b*y.Probes,
		Reads: a*x.Reads + b*y.Reads, Bytes: a*x.Bytes + b*y.Bytes}
	spread := math.Hypot(a*(x.High-x.Blocks), b*(y.High-y.Blocks))
	// How many of the lookups find something is chance too, if keys were sampled.
	drawn := (1 - 1/float64(m.oneIn)) * (b*b*all.squares[ofFound] + a*a*all.squares[ofAbsent])
	_, mixed := around(0, math.Abs(x.Blocks-y.Blocks)*math.Sqrt(drawn)/float64(n))
	spread = math.Hypot(spread, mixed)
	c.Low, c.High = max(0, c.Blocks-spread), c.Blocks+spread
	return c
}
