package advise

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
)

// A bed is a made-up store with its keys: a last run of all even numbers, in files of a range
// each, under young runs that have some of them.
type bed struct {
	store  Store
	holds  []map[uint64]bool // by file
	random *rand.Rand
	n      uint64
}

const (
	bedFiles = 4
	bedYoung = 3
	perBlock = 20
)

func newBed(n uint64, filter string) *bed {
	b := &bed{random: rand.New(rand.NewPCG(7, 8)), n: n}
	b.store = Store{Runs: bedYoung + 1, Cache: 100 << 10, Filter: filter}
	for run := range bedYoung {
		keys := map[uint64]bool{}
		for range n / 20 {
			keys[2*b.random.Uint64N(n)] = true
		}
		b.add(run, keys, filter)
	}
	for f := range uint64(bedFiles) {
		keys := map[uint64]bool{}
		for i := f * n / bedFiles; i < (f+1)*n/bedFiles; i++ {
			keys[2*i] = true
		}
		b.add(bedYoung, keys, filter)
	}
	return b
}

func (b *bed) add(run int, keys map[uint64]bool, filter string) {
	n := uint64(len(keys))
	e := filterpolicy.Expectation{}
	if p, err := filterpolicy.Parse(filter); err == nil {
		e = filterpolicy.Expected(p, int(n))
	}
	blocks := n/perBlock + 1
	b.holds = append(b.holds, keys)
	b.store.Files = append(b.store.Files, File{Run: run, Keys: n, Blocks: blocks, Bytes: int64(blocks) * 500,
		Decoded: 1000, Filter: filter, FilterBytes: int64(e.BitsPerKey * float64(n) / 8)})
}

// key returns where a lookup of a number leads.
func (b *bed) key(n uint64) Key {
	k := Key{Hash: mix(n)}
	for i := range b.store.Files {
		f := &b.store.Files[i]
		if f.Run == bedYoung && n/2*bedFiles/b.n != uint64(i-bedYoung) {
			continue
		}
		place, of := n, 2*b.n // of the key in the range of the file
		if f.Run == bedYoung {
			place, of = n%(2*b.n/bedFiles), 2*b.n/bedFiles
		}
		s := Step{File: int32(i), Block: int32(place * f.Blocks / of), Present: b.holds[i][n]}
		k.Path = append(k.Path, s)
		if s.Present {
			k.Found = true
			break
		}
	}
	return k
}

// trace looks up even numbers, which are there, and odd ones, which are not.
func (b *bed) trace(lookups int, skew float64) *Trace {
	t, numbers := &Trace{}, map[uint64]int32{}
	zipf := rand.NewZipf(b.random, skew, 20, b.n-1)
	for i := range lookups {
		n := 2*(mix(zipf.Uint64())%b.n) + uint64(i%2)
		at, ok := numbers[n]
		if !ok {
			at = int32(len(t.Keys))
			numbers[n] = at
			t.Keys = append(t.Keys, b.key(n))
		}
		t.Lookups = append(t.Lookups, Lookup{Key: at})
	}
	return t
}

// Expected blocks are those that real filters of the same keys let pass, within what chance does.
func TestBlocksAreThoseOfRealFilters(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine counts; kv/advice has readers and writers beside")
	b := newBed(20_000, "blocked:10")
	trace := b.trace(40_000, 1.0001)
	m := New(&b.store, trace, UsualPrices())
	for _, spec := range []string{"none", "blocked:6", "blocked:12", "ribbon:4", "ribbon:8", "cuckoo:12", "bloom:8"} {
		p := m.Predict(Setting{Filter: spec}, b.store.Cache)[0]
		policy, err := filterpolicy.Parse(spec)
		require.NoError(t, err)
		filters := make([]filterpolicy.Filter, len(b.holds))
		for i, keys := range b.holds {
			builder := policy.NewBuilder()
			for n := range keys {
				builder.AddHash(mix(n))
			}
			if data, ok := builder.Finish(nil); ok {
				filters[i], err = filterpolicy.Decode(policy.Name(), data)
				require.NoError(t, err)
			}
		}
		found, absent := 0, 0
		for _, l := range trace.Lookups[m.warm:] {
			k := &trace.Keys[l.Key]
			for _, s := range k.Path {
				switch {
				case filters[s.File] != nil && !filters[s.File].MayContainHash(k.Hash):
				case k.Found:
					found++
				default:
					absent++
				}
			}
		}
		sigmas := 2.0 // beyond the interval of two: one in some thousand
		low := p.Absent.Blocks - sigmas*(p.Absent.Blocks-p.Absent.Low) - 1e-9
		high := p.Absent.Blocks + sigmas*(p.Absent.High-p.Absent.Blocks) + 1e-9
		got := float64(absent) / float64(p.Absent.Operations)
		require.True(t, low <= got && got <= high, "%s: %g of [%g, %g]", spec, got, low, high)
		require.InEpsilon(t, float64(found)/float64(p.Found.Operations), p.Found.Blocks, 0.02, spec)
	}
}

// Without filters nothing is chance, so the reads are those of a replay by hand.
func TestReadsAreThoseOfAReplay(t *testing.T) {
	b := newBed(5000, "blocked:10")
	trace := b.trace(20_000, 1.1)
	m := New(&b.store, trace, UsualPrices())
	p := m.Predict(Setting{Filter: "none"}, 60_000)[0]
	number := map[[2]int32]int32{}
	for _, k := range trace.Keys {
		for _, s := range k.Path {
			id := [2]int32{s.File, s.Block}
			if _, ok := number[id]; !ok {
				number[id] = int32(len(number))
			}
		}
	}
	sizes := make([]float64, len(number))
	for i := range sizes {
		sizes[i] = 1000
	}
	c, reads, blocks := newClock(60_000, sizes, 1), 0, 0
	for i, l := range trace.Lookups {
		for _, s := range trace.Keys[l.Key].Path {
			hit := c.read(number[[2]int32{s.File, s.Block}])
			if i >= m.warm {
				blocks++
				if !hit {
					reads++
				}
			}
		}
	}
	n := float64(len(trace.Lookups) - m.warm)
	require.InDelta(t, float64(blocks)/n, p.All.Blocks, 1e-9)
	require.InDelta(t, float64(reads)/n, p.All.Reads, 1e-9)
	require.InDelta(t, 500*float64(reads)/n, p.All.Bytes, 1e-6)
}

// A part of the blocks tells what all of them would.
func TestASampleOfTheBlocksIsEnough(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine counts; kv/advice has readers and writers beside")
	b := newBed(400_000, "blocked:10")
	trace := b.trace(100_000, 1.05)
	whole, part := New(&b.store, trace, UsualPrices()), newModel(&b.store, trace, UsualPrices(), 80_000)
	require.InDelta(t, 1, whole.share, 0)
	require.Less(t, part.share, 0.3)
	for _, cache := range []int64{500 << 10, 2 << 20, 8 << 20} {
		want, got := whole.Predict(Setting{}, cache)[0], part.Predict(Setting{}, cache)[0]
		require.InDelta(t, want.All.Blocks, got.All.Blocks, 1e-9, "it is no replay")
		require.InEpsilon(t, want.All.Reads, got.All.Reads, 0.1, "cache of %d", cache)
	}
}

// One key in some, and hashes in place of keys, give about what the whole trace does, if keys lie anywhere.
func TestLessIsKnownOfTracesThatHaveLess(t *testing.T) {
	b := newBed(50_000, "blocked:8")
	trace := b.trace(80_000, 1.02)
	want := New(&b.store, trace, UsualPrices()).Predict(Setting{}, 1<<20)[0]

	sampled := &Trace{Keys: trace.Keys, OneIn: 8}
	for _, l := range trace.Lookups {
		if mix(trace.Keys[l.Key].Hash)%8 == 0 {
			sampled.Lookups = append(sampled.Lookups, l)
		}
	}
	m := New(&b.store, sampled, UsualPrices())
	got := m.Predict(Setting{}, 1<<20)[0]
	require.LessOrEqual(t, got.All.Low, want.All.Blocks)
	require.GreaterOrEqual(t, got.All.High, want.All.Blocks)
	require.Less(t, got.All.High-got.All.Low, 0.5*want.All.Blocks)
	require.InEpsilon(t, want.All.Reads, got.All.Reads, 0.2)
	require.Contains(t, m.unknown()[2], "one key in 8")

	hashes := &Trace{Lookups: trace.Lookups}
	for _, k := range trace.Keys {
		hashes.Keys = append(hashes.Keys, Key{Hash: k.Hash, Found: k.Found, Pathless: true})
	}
	m = New(&b.store, hashes, UsualPrices())
	got = m.Predict(Setting{}, 1<<20)[0]
	require.InEpsilon(t, want.All.Blocks, got.All.Blocks, 0.1)
	require.InEpsilon(t, want.All.Reads, got.All.Reads, 0.15)
	require.Contains(t, m.unknown()[2], "hashes in place of 100 %")
}

// What is remembered of false positives is not read again.
func TestFalsePositivesAreReadOnce(t *testing.T) {
	b := newBed(5000, "blocked:4")
	trace := b.trace(40_000, 1.3)
	m := New(&b.store, trace, UsualPrices())
	p := m.Predict(Setting{}, 1<<20)[0]
	few, many := m.Predict(Setting{Remembered: 16 << 10}, 1<<20)[0], m.Predict(Setting{Remembered: 1 << 20}, 1<<20)[0]
	require.Less(t, few.Absent.Blocks, p.Absent.Blocks)
	require.Less(t, many.Absent.Blocks, few.Absent.Blocks)
	keys, lookups := map[int32]bool{}, 0
	for _, l := range trace.Lookups {
		if !trace.Keys[l.Key].Found {
			keys[l.Key] = true
			lookups++
		}
	}
	first := float64(len(keys)) / float64(lookups)
	require.InEpsilon(t, p.Absent.Blocks*first, many.Absent.Blocks, 0.3)
	require.Equal(t, p.Memory+1<<20, many.Memory)

	without := m.Predict(Setting{Filter: "none"}, 1<<20)[0]
	with := m.Predict(Setting{Filter: "none", Remembered: 1 << 20}, 1<<20)[0]
	require.Equal(t, without.Absent.Blocks, with.Absent.Blocks, "what no filter said is not remembered")
}

// A budget is spread as the store spreads it: the sum of the rates is less, and no more is used.
func TestABudgetIsSpread(t *testing.T) {
	b := newBed(50_000, "ribbon:8")
	m := New(&b.store, b.trace(20_000, 1.0001), UsualPrices())
	equal := m.Predict(Setting{Filter: "ribbon:8"}, 1<<20)[0]
	spread := m.Predict(Setting{Filter: "ribbon:8", Budget: equal.FilterBytes}, 1<<20)[0]
	require.Less(t, spread.Absent.Blocks, 0.95*equal.Absent.Blocks)
	require.InEpsilon(t, equal.FilterBytes, spread.FilterBytes, 0.1)
}

// An advice keeps to the limit of memory, and its best setting is the best of those within it.
func TestAdviceKeepsToTheLimit(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine counts; kv/advice has readers and writers beside")
	n := uint64(scale.Count(12_000, 50_000))
	b := newBed(n, "blocked:10")
	m := New(&b.store, b.trace(int(n-n/5), 1.05), UsualPrices())
	for _, memory := range []int64{0, 120 << 10, 400 << 10, 8 << 20} {
		a, err := m.Advise(t.Context(), Config{Memory: memory})
		require.NoError(t, err)
		if memory == 0 {
			memory = a.Now.Memory
		}
		require.Equal(t, memory, a.Memory)
		require.LessOrEqual(t, a.Recommendation.Setting.Memory, memory+memory/1000)
		best := math.Inf(1)
		for _, p := range a.All {
			if p.Memory <= memory {
				best = min(best, p.Score())
			}
		}
		require.LessOrEqual(t, a.Best.Score(), best)
		require.NotEmpty(t, a.Recommendation.Words)
		require.Equal(t, a.Recommendation.Keep, a.Recommendation.Options == "")
		for _, w := range a.Worth {
			require.NotZero(t, w.Bytes)
		}
		for i := range a.Curve[1:] {
			require.LessOrEqual(t, a.Curve[i+1].All.Reads, a.Curve[i].All.Reads+0.02, "larger caches read less")
		}
	}
}

// A scan reads what its bounds hold, and a block of each file that has nothing for it, unless a range filter says so.
func TestScansReadWhatTheyComeTo(t *testing.T) {
	b := newBed(5000, "blocked:10")
	trace := &Trace{}
	for i := range 4000 {
		s := Scan{At: time.Duration(i), Bounded: i%2 == 0, Entries: 3}
		for f := range bedYoung {
			s.Parts = append(s.Parts, Part{File: int32(f), First: int32(i % 10), Blocks: 1, Empty: true})
		}
		s.Parts = append(s.Parts, Part{File: bedYoung, First: int32(i % 50), Blocks: 2})
		trace.Scans = append(trace.Scans, s)
	}
	m := New(&b.store, trace, UsualPrices())
	p := m.Predict(Setting{}, 1<<20)[0]
	require.InDelta(t, bedYoung+2, p.Scans.Blocks, 1e-9)
	require.Equal(t, 4000, p.Scans.Operations)
	require.InDelta(t, 51+3*10, 4000*p.Scans.Reads, 1e-6, "each block once")
	require.True(t, m.emptyScans())

	f := b.store.filtersOf(&Setting{})
	for i := range bedYoung {
		f.ranges[i] = 0.1
	}
	c := m.expectScans(&f)
	require.InDelta(t, 2+bedYoung*(0.5+0.5*0.1), c.Blocks, 1e-9, "half of the scans have bounds")
	require.InDelta(t, bedYoung*0.5, c.Probes, 1e-9)
	require.Less(t, c.Low, c.Blocks)
	all, _ := m.stream(&f, 0, 1)
	require.InEpsilon(t, 4000*c.Blocks, len(all), 0.05)

	cut := m.Predict(Setting{Ranges: "cut:6"}, 1<<20)[0]
	require.InDelta(t, 2+bedYoung*0.5, cut.Scans.Blocks, 0.1)
	require.Greater(t, cut.FilterBytes, p.FilterBytes)
	require.Less(t, float64(cut.FilterBytes-p.FilterBytes), 20.0/8*0.15*5000+100, "not of the last run")
	a, err := m.Advise(t.Context(), Config{})
	require.NoError(t, err)
	require.NotEmpty(t, a.Best.Ranges)
	require.Contains(t, a.Best.OptionsText(&b.store), "RangeFilter = cut:")
}

// Blocks are as large as a step says that knows, and else as those of their file are on average.
func TestBlocksHaveSizesOfTheirOwn(t *testing.T) {
	s := Store{Runs: 1, Files: []File{{Keys: 4, Blocks: 4, Bytes: 400, Decoded: 100}}}
	trace := &Trace{}
	for i := range 4 {
		k := Key{Hash: uint64(i), Found: true, Path: []Step{{Block: int32(i / 2), Present: true}}}
		if i == 1 {
			k.Path[0].Decoded, k.Path[0].Stored = 300, 250
		}
		trace.Keys = append(trace.Keys, k)
	}
	for i := range 48 {
		trace.Lookups = append(trace.Lookups, Lookup{Key: int32(i % 4)})
	}
	p := New(&s, trace, UsualPrices()).Predict(Setting{}, 1000)[0]
	require.InDelta(t, 0.5, p.All.Reads, 1e-9,
		"the larger block, which half of the lookups read, is too large for the cache")
	require.InDelta(t, 125, p.All.Bytes, 1e-9)
}
