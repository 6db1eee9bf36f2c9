package scalable_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
	"github.com/siftkv/siftkv/filterpolicy/scalable"
)

func newSet(tb testing.TB, n int, rate float64, o *scalable.Options) *scalable.Set {
	tb.Helper()
	s, err := scalable.New(n, rate, o)
	require.NoError(tb, err)
	return s
}

// filled returns a set of n hashes with the salt 1 that began with first.
func filled(tb testing.TB, first, n int, rate float64, o *scalable.Options) *scalable.Set {
	tb.Helper()
	s := newSet(tb, first, rate, o)
	for i := range uint64(n) {
		s.AddHash(settest.Hash(1, i))
	}
	return s
}

func zeroSet() settest.Codec { return &scalable.Set{} }

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		n    int
		rate float64
		o    *scalable.Options
		want string
	}{
		{0, 0.01, nil, "capacity must be from 1 to "},
		{1, 1e-10, nil, "false-positive rate must be from 1e-09 to 0.9"},
		{1, 1, nil, "false-positive rate must be from "},
		{1, 0.01, &scalable.Options{Growth: 0.9}, "growth must be from 1 to 1000, not 0.9"},
		{1, 0.01, &scalable.Options{Growth: -2}, "growth must be from 1 to 1000"},
		{1, 0.01, &scalable.Options{Growth: math.NaN()}, "growth must be from 1 to 1000"},
		{1, 0.01, &scalable.Options{Growth: math.Inf(1)}, "growth must be from 1 to 1000"},
		{1, 0.01, &scalable.Options{Tightening: 1}, "tightening must be from 0.1 to 0.95, not 1"},
		{1, 0.01, &scalable.Options{Tightening: math.NaN()}, "tightening must be from "},
	} {
		_, err := scalable.New(c.n, c.rate, c.o)
		require.ErrorContains(t, err, c.want)
	}
}

// The compound rate keeps the promise at every stage: layers just full, just begun, half
// full, and long after the first.
func TestRateIsAsPromisedAtEveryStage(t *testing.T) {
	for _, c := range []struct {
		first int
		rate  float64
		o     scalable.Options
		most  int // keys
	}{
		{1000, 0.01, scalable.Options{}, 200_000},
		{1000, 0.01, scalable.Options{Tightening: 0.5}, 200_000},
		{1000, 0.01, scalable.Options{Growth: 10}, 300_000},
		{1000, 0.01, scalable.Options{Growth: 10, Blocked: true}, 300_000},
		{1000, 0.01, scalable.Options{Growth: 4, Tightening: 0.8}, 200_000},
		{1000, 0.01, scalable.Options{}, 100_000}, // BoomFilters: 8.6 %
		{1000, 0.01, scalable.Options{Growth: 1, Tightening: 0.9}, 30_000},
		{1000, 0.01, scalable.Options{Growth: 1.5, Blocked: true}, 100_000},
		{10, 0.1, scalable.Options{Growth: 2}, 50_000},
		{100, 0.001, scalable.Options{Growth: 3, Tightening: 0.1, Blocked: true}, 50_000},
		{1, 0.5, scalable.Options{Tightening: 0.95}, 20_000},
	} {
		t.Run(fmt.Sprintf("%d/%g/%+v", c.first, c.rate, c.o), func(t *testing.T) {
			s, next := newSet(t, c.first, c.rate, &c.o), uint64(0)
			most := settest.Share(c.most)
			for stage := float64(c.first); int(stage) < 2*most; stage *= 1.5 {
				for ; next < uint64(min(int(stage), most)); next++ {
					s.AddHash(settest.Hash(1, next))
				}
				// A set of few keys scatters around its mean.
				promised := c.rate * (1 + 1/math.Sqrt(float64(max(10, s.Len()))))
				settest.KeepsPromise(t, s.ContainsHash, 40_000, promised)
				require.LessOrEqual(t, s.FalsePositiveRate(), promised)
			}
			missing := 0
			for i := range next {
				if !s.ContainsHash(settest.Hash(1, i)) {
					missing++
				}
			}
			require.Zero(t, missing)
			rate, sigma := settest.Rate(s.ContainsHash, 200_000, c.rate)
			t.Logf("%d keys, %d layers: %.4f %% ± %.4f %%, estimated %.4f %%; %.1f bits per key, %.1f at capacity", next, s.Layers(),
				100*rate, 100*sigma, 100*s.FalsePositiveRate(), 8*float64(s.Size())/float64(next), 8*float64(s.Size())/float64(s.Cap()))
			require.LessOrEqual(t, rate, c.rate+4*sigma)
			require.InDelta(t, s.FalsePositiveRate(), rate, 0.05*c.rate+4*sigma)
		})
	}
}

// 1 k, 10 k, 100 k.
func TestLayersGrow(t *testing.T) {
	s := newSet(t, 1000, 1e-6, &scalable.Options{Growth: 10})
	for n, layers := range map[uint64]int{999: 1, 1000: 1, 1001: 2, 11_000: 2, 11_001: 3} {
		s.Reset()
		for i := range n {
			require.True(t, s.AddNewHash(settest.Hash(1, i)))
		}
		require.Equal(t, layers, s.Layers(), "%d keys", n)
		require.Equal(t, int(n), s.Len())
		require.Equal(t, []int{1000, 11_000, 111_000}[layers-1], s.Cap())
	}
}

// A repeated item does nothing: no count, no bit, no layer.
func TestRepeatedKeysDoNotForceGrowth(t *testing.T) {
	for _, o := range []scalable.Options{{}, {Blocked: true}} {
		s := filled(t, 100, 100, 0.001, &o)
		before := settest.Bytes(t, s)
		for range 50 {
			for i := range uint64(100) {
				require.False(t, s.AddNewHash(settest.Hash(1, i)))
			}
		}
		require.Equal(t, before, settest.Bytes(t, s))
		require.Equal(t, 1, s.Layers())

		s = filled(t, 10, 1000, 0.01, &o)
		before = settest.Bytes(t, s)
		for i := range uint64(1000) {
			s.AddHash(settest.Hash(1, i)) // in all layers, not only the last
		}
		require.Equal(t, before, settest.Bytes(t, s))
	}
}

func TestUnmixedHashes(t *testing.T) {
	n := uint64(settest.Share(50_000))
	for name, at := range settest.Unmixed {
		for _, o := range []scalable.Options{{}, {Blocked: true}} {
			s := newSet(t, 100, 0.01, &o)
			for i := range n {
				s.AddHash(at(i))
			}
			positives := 0
			for i := range uint64(100_000) {
				if s.ContainsHash(at(n + i)) {
					positives++
				}
			}
			require.LessOrEqual(t, positives, 1300, "%s, %+v", name, o) // small layers scatter
		}
	}
}

func TestStateAndReset(t *testing.T) {
	s := filled(t, 10, 2000, 0.01, nil)
	before := settest.Bytes(t, s)
	require.True(t, s.FillRatio() > 0.2 && s.FillRatio() < 0.51, "%v", s.FillRatio())
	require.Positive(t, s.FalsePositiveRate())
	require.Equal(t, before, settest.Bytes(t, s), "a question changed the state")
	s.Reset()
	require.Equal(t, settest.Bytes(t, newSet(t, 10, 0.01, nil)), settest.Bytes(t, s))
	s.Add([]byte("abc"))
	require.True(t, s.Contains([]byte("abc")))
	require.True(t, s.ContainsHash(0x44bc2cf5ad770999))
	require.False(t, s.AddNew([]byte("abc")))
	require.Equal(t, 1, s.Len())
}

func TestZeroSet(t *testing.T) {
	var s scalable.Set
	require.False(t, s.ContainsHash(1))
	require.Zero(t, s.Len()+s.Cap()+s.Size()+s.Layers())
	require.Zero(t, s.FillRatio()+s.FalsePositiveRate())
	s.Reset()
	require.Panics(t, func() { s.AddHash(1) })
	settest.Zero(t, zeroSet)
}

// Blocked layers give way to classic ones where a low rate would cost them dearly.
func TestLayersOfLowRatesAreClassic(t *testing.T) {
	s := filled(t, 1, 5000, 0.01, &scalable.Options{Blocked: true})
	data := settest.Bytes(t, s)
	kinds := string(data[16+40 : 16+40+s.Layers()])
	require.Regexp(t, "^l+b*$", kinds)
	classic := filled(t, 1, 5000, 0.01, nil)
	require.Less(t, float64(s.Size()), 1.5*float64(classic.Size())+64*float64(s.Layers()))
}

func TestBytes(t *testing.T) {
	for _, o := range []scalable.Options{{}, {Blocked: true, Growth: 10}} {
		for _, n := range []int{0, 1, 100, 20_000} {
			s := filled(t, 10, n, 0.01, &o)
			settest.RoundTrip(t, s, zeroSet)
			var again scalable.Set
			require.NoError(t, again.UnmarshalBinary(settest.Bytes(t, s)))
			for i := range uint64(50) { // it goes on growing as the first would
				require.Equal(t, s.AddNewHash(i), again.AddNewHash(i))
			}
			require.Equal(t, settest.Bytes(t, s), settest.Bytes(t, &again))
		}
		settest.Damage(t, filled(t, 2, 12, 0.01, &o), zeroSet)
	}
	settest.Golden(t, "scalable.golden", filled(t, 4, 30, 0.01, nil))
	settest.Golden(t, "scalable-blocked.golden", filled(t, 20, 60, 0.01, &scalable.Options{Blocked: true, Growth: 3, Tightening: 0.8}))
}

// parts cuts a set's bytes behind its description.
func parts(data []byte, layers int) (head, rest []byte) {
	n := envelope.Overhead + 40 + layers
	return slices.Clone(data[:n]), data[n:]
}

func TestForgedSetsAreRefused(t *testing.T) {
	s := filled(t, 4, 10, 0.01, nil) // 4 + 8
	head, rest := parts(settest.Bytes(t, s), 2)
	for _, c := range []struct {
		at   int
		to   byte
		want string
	}{
		{7, 0xff, "a set that cannot be: filterpolicy: false-positive rate must be"},
		{15, 0x7f, "tightening must be"},
		{23, 0, "growth must be"},
		{22, 8, "layer 1 was made for 8 keys, and must have been for 12"},
		{24, 0, "capacity must be"},
		{24, 5, "layer 0 was made for 4 keys, and must have been for 5"},
		{30, 1, "a scalable set that begins with "},
		{32, 2, "flag 2 cannot be"},
		{41, 'x', "layer 1 is of kind 'x'"},
		{41, 'l', "family is 'b', want 'l'"},
	} {
		err := zeroSet().UnmarshalBinary(append(settest.Forge(head, c.at, c.to), rest...))
		require.ErrorIs(t, err, envelope.ErrCorrupt)
		require.ErrorContains(t, err, c.want)
	}
	none := envelope.Append(nil, envelope.Scalable, 1, head[16:16+40])
	require.ErrorContains(t, zeroSet().UnmarshalBinary(none), "40 bytes do not describe a scalable set")
	later := envelope.Append(nil, envelope.Scalable, 2, head[16:16+42])
	require.ErrorContains(t, zeroSet().UnmarshalBinary(later), "version is 2; this program reads version 1")
	require.ErrorContains(t, zeroSet().UnmarshalBinary(append(settest.Bytes(t, s), 1)), "the set ends after ")
}

func use(tb testing.TB, s *scalable.Set) {
	tb.Helper()
	for i := range uint64(4) {
		s.ContainsHash(i)
	}
	require.True(tb, s.FalsePositiveRate() >= 0 && s.FalsePositiveRate() <= 1)
	if s.Cap() < 1000 { // a forged description may ask for terabytes next
		s.AddHash(1)
		require.True(tb, s.ContainsHash(1))
	}
}

func FuzzSet(f *testing.F) {
	settest.Fuzz(f, func() *scalable.Set { return &scalable.Set{} }, use,
		settest.Bytes(f, filled(f, 4, 10, 0.01, nil)), settest.Bytes(f, filled(f, 4, 10, 0.01, &scalable.Options{Blocked: true})))
}

// Descriptions and layers that are sound as envelopes, and may not fit each other.
func FuzzParts(f *testing.F) {
	data := settest.Bytes(f, filled(f, 10, 9, 0.01, nil))
	head, rest := parts(data, 1)
	f.Add(head[16:16+41], rest[16:len(rest)-4])
	f.Add(head[16:16+40], rest[16:40])
	f.Fuzz(func(t *testing.T, head, layer []byte) {
		data := envelope.Append(nil, envelope.Scalable, 1, head)
		data = envelope.Append(data, envelope.Bloom, 1, layer)
		var s scalable.Set
		if err := s.UnmarshalBinary(data); err != nil {
			require.ErrorIs(t, err, envelope.ErrCorrupt)
			return
		}
		require.Equal(t, data, settest.Bytes(t, &s))
		if s.Len() < s.Cap() {
			use(t, &s)
		}
	})
}

func TestAskingAllocatesNothing(t *testing.T) {
	for _, o := range []scalable.Options{{}, {Blocked: true}} {
		s := filled(t, 10, 1000, 0.01, &o)
		key := []byte("key")
		require.Zero(t, testing.AllocsPerRun(100, func() {
			s.Add(key)
			s.Contains(key)
		}))
	}
}

func BenchmarkSet(b *testing.B) {
	const first, n = 10_000, 1_000_000
	for _, o := range []scalable.Options{{}, {Blocked: true}, {Growth: 10}, {Growth: 10, Blocked: true}} {
		name := fmt.Sprintf("growth %g, blocked %v", o.Growth, o.Blocked)
		b.Run("add/"+name, func(b *testing.B) {
			s, i := newSet(b, first, 0.01, &o), uint64(0)
			for b.Loop() {
				s.AddHash(settest.Hash(1, i%n))
				i++
			}
		})
		s := filled(b, first, n, 0.01, &o)
		for what, salt := range map[string]uint64{"present": 1, "absent": 2} {
			b.Run(what+"/"+name, func(b *testing.B) {
				i := uint64(0)
				for b.Loop() {
					s.ContainsHash(settest.Hash(salt, i%n))
					i++
				}
				b.ReportMetric(float64(s.Layers()), "layers")
				b.ReportMetric(8*float64(s.Size())/n, "bits/key")
			})
		}
	}
}

func Example() {
	// Nobody knows how many there will be: 1 k, then 10 k, then 100 k more.
	seen, err := scalable.New(1000, 0.01, &scalable.Options{Growth: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 50_000 {
		seen.Add(fmt.Appendf(nil, "key-%d", i))
	}
	fmt.Println(seen.Contains([]byte("key-49999")), seen.Layers(), seen.Cap())
	fmt.Println(seen.FalsePositiveRate() <= 0.01)
	// Output:
	// true 3 111000
	// true
}
