package conformance

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/scalable"
	"github.com/siftkv/siftkv/internal/hostile"
)

func scalableNewSet(tb testing.TB, n int, rate float64, o *scalable.Options) *scalable.Set {
	tb.Helper()
	s, err := scalable.New(n, rate, o)
	require.NoError(tb, err)
	return s
}

// scalableFilled returns a set of n hashes with the salt 1 that began with first.
func scalableFilled(tb testing.TB, first, n int, rate float64, o *scalable.Options) *scalable.Set {
	tb.Helper()
	return Fill(tb, scalableNewSet(tb, first, rate, o), n)
}

// scalableFamilies are sets that begin with the keys that they are asked for, and such as
// have grown when they have them.
var scalableFamilies = map[string]Family[*scalable.Set]{
	"one layer":       With(scalable.New, nil),
	"blocked layer":   With(scalable.New, &scalable.Options{Blocked: true}),
	"growing":         scalableGrowing(scalable.Options{}),
	"growing tenfold": scalableGrowing(scalable.Options{Growth: 10, Blocked: true}),
}

func scalableGrowing(o scalable.Options) Family[*scalable.Set] {
	return Of(func(n int, rate float64) (*scalable.Set, error) { return scalable.New(max(1, n/20), rate, &o) })
}

var scalableZeroSet = scalableFamilies["growing"].Zero

func TestScalableSet(t *testing.T) {
	for name, f := range scalableFamilies {
		t.Run(name, func(t *testing.T) { SetSuite(t, f) })
	}
}

func BenchmarkScalableSet(b *testing.B) {
	for name, f := range scalableFamilies {
		benchmarkSets(b, name, f, 1_000_000, 0.01)
	}
}

func TestScalableNewRefuses(t *testing.T) {
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

// A scalable filter of a well-known library promises 1 % and gives 8.6 %. Here the compound
// rate keeps the promise at every stage: layers just full, just begun, half full, and long
// after the first.
func TestScalableFaultCompoundRateAboveThePromise(t *testing.T) {
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
		{1000, 0.01, scalable.Options{Growth: 1, Tightening: 0.9}, 30_000},
		{1000, 0.01, scalable.Options{Growth: 1.5, Blocked: true}, 100_000},
		{10, 0.1, scalable.Options{Growth: 2}, 50_000},
		{100, 0.001, scalable.Options{Growth: 3, Tightening: 0.1, Blocked: true}, 50_000},
		{1, 0.5, scalable.Options{Tightening: 0.95}, 20_000},
	} {
		t.Run(fmt.Sprintf("%d/%g/%+v", c.first, c.rate, c.o), func(t *testing.T) {
			s, next := scalableNewSet(t, c.first, c.rate, &c.o), uint64(0)
			most := Share(c.most)
			for stage := float64(c.first); int(stage) < 2*most; stage *= 1.5 {
				for ; next < uint64(min(int(stage), most)); next++ {
					s.AddHash(Hash(1, next))
				}
				// A set of few keys scatters around its mean.
				promised := c.rate * (1 + 1/math.Sqrt(float64(max(10, s.Len()))))
				KeepsPromise(t, s.ContainsHash, 40_000, promised)
				require.LessOrEqual(t, s.FalsePositiveRate(), promised)
			}
			Holds(t, s, int(next))
			rate, sigma := SetRate(s.ContainsHash, Share(200_000), c.rate)
			t.Logf("%d keys, %d layers: %.4f %% ± %.4f %%, estimated %.4f %%; %.1f bits per key, %.1f at capacity",
				next, s.Layers(),
				100*rate, 100*sigma, 100*s.FalsePositiveRate(), 8*float64(s.Size())/float64(next),
				8*float64(s.Size())/float64(s.Cap()))
			require.LessOrEqual(t, rate, c.rate+4*sigma)
			require.InDelta(t, s.FalsePositiveRate(), rate, 0.05*c.rate+4*sigma)
		})
	}
}

// 1 k, 10 k, 100 k.
func TestScalableLayersGrow(t *testing.T) {
	s := scalableNewSet(t, 1000, 1e-6, &scalable.Options{Growth: 10})
	for n, layers := range map[uint64]int{999: 1, 1000: 1, 1001: 2, 11_000: 2, 11_001: 3} {
		s.Reset()
		for i := range n {
			require.True(t, s.AddNewHash(Hash(1, i)))
		}
		require.Equal(t, layers, s.Layers(), "%d keys", n)
		require.Equal(t, int(n), s.Len())
		require.Equal(t, []int{1000, 11_000, 111_000}[layers-1], s.Cap())
	}
}

// A repeated item does nothing: no count, no bit, no layer.
func TestScalableRepeatedKeysDoNotForceGrowth(t *testing.T) {
	for _, o := range []scalable.Options{{}, {Blocked: true}} {
		s := scalableFilled(t, 100, 100, 0.001, &o)
		before := Bytes(t, s)
		for range 50 {
			for i := range uint64(100) {
				require.False(t, s.AddNewHash(Hash(1, i)))
			}
		}
		require.Equal(t, before, Bytes(t, s))
		require.Equal(t, 1, s.Layers())

		s = scalableFilled(t, 10, 1000, 0.01, &o)
		before = Bytes(t, s)
		for i := range uint64(1000) {
			s.AddHash(Hash(1, i)) // in all layers, not only the last
		}
		require.Equal(t, before, Bytes(t, s))
	}
}

// Blocked layers give way to classic ones where a low rate would cost them dearly.
func TestScalableLayersOfLowRatesAreClassic(t *testing.T) {
	s := scalableFilled(t, 1, 5000, 0.01, &scalable.Options{Blocked: true})
	data := Bytes(t, s)
	kinds := string(data[16+40 : 16+40+s.Layers()])
	require.Regexp(t, "^l+b*$", kinds)
	classic := scalableFilled(t, 1, 5000, 0.01, nil)
	require.Less(t, float64(s.Size()), 1.5*float64(classic.Size())+64*float64(s.Layers()))
}

func TestScalableSetThatWasReadGrowsOn(t *testing.T) {
	for _, o := range []scalable.Options{{}, {Blocked: true, Growth: 10}} {
		for _, n := range []int{0, 1, 100, 20_000} {
			s := scalableFilled(t, 10, n, 0.01, &o)
			var again scalable.Set
			require.NoError(t, again.UnmarshalBinary(Bytes(t, s)))
			for i := range uint64(50) { // it goes on growing as the first would
				require.Equal(t, s.AddNewHash(i), again.AddNewHash(i))
			}
			require.Equal(t, Bytes(t, s), Bytes(t, &again))
		}
	}
}

func TestScalableGolden(t *testing.T) {
	GoldenSet(t, "scalable/scalable.golden", scalableFilled(t, 4, 30, 0.01, nil))
	GoldenSet(t, "scalable/scalable-blocked.golden",
		scalableFilled(t, 20, 60, 0.01, &scalable.Options{Blocked: true, Growth: 3, Tightening: 0.8}))
}

// scalableParts cuts a set's bytes after its description.
func scalableParts(data []byte, layers int) (head, rest []byte) {
	n := frame.Overhead + 40 + layers
	return slices.Clone(data[:n]), data[n:]
}

func TestScalableForgedSetsAreRefused(t *testing.T) {
	s := scalableFilled(t, 4, 10, 0.01, nil) // 4 + 8
	head, rest := scalableParts(Bytes(t, s), 2)
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
		{41, 'x', "kind 'x' is neither bloom nor blocked"},
		{41, 'l', "family is 'b', want 'l'"},
	} {
		err := scalableZeroSet().UnmarshalBinary(append(SetForgery{At: c.at, To: c.to}.Forge(head), rest...))
		require.ErrorIs(t, err, frame.ErrCorrupt)
		require.ErrorContains(t, err, c.want)
	}
	none := envelope(nil, frame.Scalable, 1, head[16:16+40])
	require.ErrorContains(t, scalableZeroSet().UnmarshalBinary(none), "40 bytes do not describe a scalable set")
	later := envelope(nil, frame.Scalable, 2, head[16:16+42])
	require.ErrorContains(t, scalableZeroSet().UnmarshalBinary(later), "version is 2; this program reads version 1")
	require.ErrorContains(t, scalableZeroSet().UnmarshalBinary(append(Bytes(t, s), 1)), "the set ends after ")
}

// scalableNextLayer is how many times the bytes of a set its next layer may have: a thousand times as
// many keys, at a rate of which each takes 17 times as many bits.
const scalableNextLayer = 17_000

func TestScalableHostileSets(t *testing.T) {
	for _, o := range []*scalable.Options{nil, {Blocked: true}, {Growth: 1000, Tightening: 0.1}} {
		s := scalableFilled(t, 20, 10, 0.9, o)
		head, layer := scalableParts(Bytes(t, s), 1)
		for mutant := range hostile.Mutants(head, 500) {
			BoundedSet(t, append(ResealSet(mutant), layer...), scalableZeroSet, scalableNextLayer)
		}
		for mutant := range hostile.Mutants(layer, 500) {
			BoundedSet(t, slices.Concat(head, ResealSet(mutant)), scalableZeroSet, scalableNextLayer)
		}
	}
}

// A layer that says that it was made for 2^40 keys, and is full of them, has the bytes
// for that.
func TestScalableSetBombsAreRefused(t *testing.T) {
	const most = 1 << 40
	word := binary.LittleEndian.AppendUint64
	for _, blocked := range []bool{false, true} {
		for _, growth := range []float64{1, 2, 1000} {
			var head []byte
			for _, x := range []float64{0.01, 0.8, growth} {
				head = word(head, math.Float64bits(x))
			}
			head = word(head, most)
			var data []byte
			if blocked {
				data = envelope(nil, frame.Scalable, 1, append(word(head, 1), byte(frame.Blocked)))
				data = envelope(data, frame.Blocked, 1, word(word(word(make([]byte, 64), most), most), 7))
			} else {
				data = envelope(nil, frame.Scalable, 1, append(word(head, 0), byte(frame.Bloom)))
				data = envelope(data, frame.Bloom, 1,
					append(word(word(word(nil, most), most), 7), make([]byte, 8)...))
			}
			var s scalable.Set
			err := s.UnmarshalBinary(data)
			require.ErrorIs(t, err, frame.ErrCorrupt)
			require.ErrorContains(t, err, "cannot hold 1099511627776 keys")
			BoundedSet(t, data, scalableZeroSet, scalableNextLayer)
		}
	}
}

// Every layer that a set makes has the bytes that a reader expects, at the extremes too.
func TestScalableLayersOfEveryShapeAreRead(t *testing.T) {
	for _, rate := range []float64{0.9, 0.5, 0.01, 1e-9} {
		for _, o := range []scalable.Options{{}, {Blocked: true}, {Growth: 1}, {Tightening: 0.1},
			{Tightening: 0.95, Growth: 4}} {
			for _, first := range []int{1, 2, 10, 1000} {
				s := scalableFilled(t, first, 3*first+20, rate, &o)
				require.NoError(t, scalableZeroSet().UnmarshalBinary(Bytes(t, s)), "%d keys, rate %g, %+v", first,
					rate, o)
			}
		}
	}
}

func scalableUse(tb testing.TB, s *scalable.Set) {
	tb.Helper()
	if s.Cap() < 1000 { // the next layer may be a thousand times as large
		Use(tb, s)
	}
}

func FuzzScalableSet(f *testing.F) {
	seeds := [][]byte{
		Bytes(f, scalableFilled(f, 4, 10, 0.01, nil)),
		Bytes(f, scalableFilled(f, 4, 10, 0.01, &scalable.Options{Blocked: true})),
	}
	fuzzSet(f, scalableZeroSet, scalableUse, seeds)
}

// Descriptions and layers that are sound as envelopes, and may not fit each other.
func FuzzScalableParts(f *testing.F) {
	data := Bytes(f, scalableFilled(f, 10, 9, 0.01, nil))
	head, rest := scalableParts(data, 1)
	f.Add(head[16:16+41], rest[16:len(rest)-4])
	f.Add(head[16:16+40], rest[16:40])
	f.Fuzz(func(t *testing.T, head, layer []byte) {
		data := envelope(nil, frame.Scalable, 1, head)
		data = envelope(data, frame.Bloom, 1, layer)
		var s scalable.Set
		if err := s.UnmarshalBinary(data); err != nil {
			require.ErrorIs(t, err, frame.ErrCorrupt)
			return
		}
		require.Equal(t, data, Bytes(t, &s))
		if s.Len() < s.Cap() {
			scalableUse(t, &s)
		}
	})
}
