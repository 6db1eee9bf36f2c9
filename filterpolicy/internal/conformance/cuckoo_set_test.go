package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
)

func cuckooNewSet(tb testing.TB, n int, rate float64, o cuckoo.Options) *cuckoo.Set {
	tb.Helper()
	s, err := cuckoo.New(n, rate, &o)
	require.NoError(tb, err)
	return s
}

var cuckooFamilies = map[string]Family[*cuckoo.Set]{
	"default": With(cuckoo.New, nil),
	"narrow":  With(cuckoo.New, &cuckoo.Options{Slots: 2}),
	"wide":    With(cuckoo.New, &cuckoo.Options{Slots: 8}),
	"guarded": With(cuckoo.New, &cuckoo.Options{Guard: true}),
}

func TestCuckooSet(t *testing.T) {
	for name, f := range cuckooFamilies {
		t.Run(name, func(t *testing.T) { SetSuite(t, f) })
	}
}

var cuckooZeroSet = cuckooFamilies["default"].Zero

// cuckooFill adds the keys of an input from the given one on until the set is full, and returns
// the number of the first that it refused.
func cuckooFill(tb testing.TB, s *cuckoo.Set, in Input, from uint64) uint64 {
	tb.Helper()
	for ; ; from++ {
		if err := s.AddHash(in.At(from)); err != nil {
			require.ErrorIs(tb, err, cuckoo.ErrFull)
			return from
		}
	}
}

func cuckooRequireHas(tb testing.TB, s *cuckoo.Set, in Input, n uint64) {
	tb.Helper()
	for i := range n {
		if !s.ContainsHash(in.At(i)) || s.CountHash(in.At(i)) == 0 {
			require.Fail(tb, "false negative", "key %d of %d of %q", i, n, in.Name)
		}
	}
}

// cuckooMeasure probes with numbers that follow the first n of an input.
func cuckooMeasure(s *cuckoo.Set, in Input, n uint64, probes int) Rate {
	r := Rate{Probes: Share(probes)}
	for i := range uint64(r.Probes) {
		if s.ContainsHash(in.At(n + i)) {
			r.Positives++
		}
	}
	return r
}

// A set of any size takes the keys it was made for, goes on to the load that its
// buckets allow, and then refuses without losing one.
func TestCuckooLoadAtFirstRefusal(t *testing.T) {
	for slots, load := range map[int]float64{2: 0.84, 4: 0.95, 8: 0.98} {
		for _, n := range []int{1000, 1 << 13, Share(50_000), Share(1<<17 + 1)} {
			s := cuckooNewSet(t, n, 0, cuckoo.Options{Slots: slots, Bits: 16})
			require.GreaterOrEqual(t, s.Cap(), n)
			require.InDelta(t, n, s.Cap(), 4*math.Sqrt(float64(n))+16)
			added := cuckooFill(t, s, Good(1), 0)
			require.Equal(t, int(added), s.Len())
			require.GreaterOrEqual(t, s.Len(), n)
			require.Greater(t, s.LoadFactor(), load, "%d slots, %d keys", slots, n)
			t.Logf("%d slots, %d keys: first refusal at load %.4f", slots, n, s.LoadFactor())
			cuckooRequireHas(t, s, Good(1), added)
		}
	}
}

// A failed insert of a well-known library throws another key out. Here hundreds of refused
// keys take nothing from those that were not: each is there, once, and what is removed makes
// room.
func TestCuckooFaultFailedInsertLosesAnotherKey(t *testing.T) {
	in, n := Good(1), max(200, Share(1000))
	for _, slots := range []int{2, 4, 8} {
		s := cuckooNewSet(t, n, 0, cuckoo.Options{Slots: slots, Bits: 32}) // so that no key hides another's loss
		accepted := []uint64{}
		for i := range uint64(2 * n) {
			err := s.AddHash(in.At(i))
			if err == nil {
				accepted = append(accepted, in.At(i))
				continue
			}
			require.ErrorIs(t, err, cuckoo.ErrFull)
		}
		require.GreaterOrEqual(t, len(accepted), n)
		require.Less(t, len(accepted), 3*n/2)
		require.Len(t, accepted, s.Len())
		for _, h := range accepted {
			require.Equal(t, 1, s.CountHash(h))
			require.True(t, s.ContainsHash(h))
		}
		for i, h := range accepted {
			require.True(t, s.RemoveHash(h))
			if i >= n/2 && i < n {
				require.NoError(t, s.AddHash(in.At(uint64(10*n+i))))
			}
		}
		for i := n / 2; i < n; i++ {
			require.True(t, s.RemoveHash(in.At(uint64(10*n+i))))
		}
		require.Zero(t, s.Len())
		require.Zero(t, s.FalsePositiveRate())
		require.Zero(t, cuckooMeasure(s, in, 0, 100_000).Positives, "what was removed leaves nothing behind")
	}
}

// One key that is added nine times blocks the whole of a well-known library's filter. Here it
// is refused with an error of its own, counted right, removed as often, and in
// nobody's way. A set that may grow does not grow for it, but counts on.
func TestCuckooFaultOneKeyBlocksTheFilter(t *testing.T) {
	for _, slots := range []int{2, 4, 8} {
		for _, grow := range []int{0, 2} {
			s := cuckooNewSet(t, 1000, 0.001, cuckoo.Options{Slots: slots, Grow: grow})
			key, copies := []byte("again"), 0
			for range 500 {
				if err := s.Add(key); err != nil {
					require.ErrorIs(t, err, cuckoo.ErrTooManyCopies)
					require.NotErrorIs(t, err, cuckoo.ErrFull)
				} else {
					copies++
				}
				require.Equal(t, copies, s.Count(key))
			}
			want := 2 * slots
			if grow != 0 {
				want = 500
			}
			require.Equal(t, want, copies)
			require.Equal(t, want, s.Len())
			for i := range uint64(1000 - 2*slots) {
				require.NoError(t, s.AddHash(Good(1).At(i)))
			}
			require.Equal(t, 1, s.Tables())
			cuckooRequireHas(t, s, Good(1), uint64(1000-2*slots))
			for ; copies > 0; copies-- {
				require.Equal(t, copies, s.Count(key))
				require.True(t, s.Remove(key))
			}
			require.False(t, s.Remove(key))
			require.False(t, s.Contains(key))
		}
	}
}

// Copies spread over a chain are counted and removed as if there were one table.
func TestCuckooCopiesInAChain(t *testing.T) {
	in := Good(1)
	s := cuckooNewSet(t, 300, 0.05, cuckoo.Options{Grow: 2})
	const n, times = 1500, 3
	for range times {
		for i := range uint64(n) {
			require.NoError(t, s.AddHash(in.At(i)))
		}
	}
	require.Equal(t, n*times, s.Len())
	require.Greater(t, s.Tables(), 2)
	for left := times; left > 0; left-- {
		for i := range uint64(n) {
			require.GreaterOrEqual(t, s.CountHash(in.At(i)), left)
			require.True(t, s.RemoveHash(in.At(i)))
		}
	}
	require.Zero(t, s.Len())
	require.Equal(t, 1, s.Tables())
	require.Zero(t, cuckooMeasure(s, in, 0, 10_000).Positives)
}

// Hashes that nobody mixed fill a set as well, and are told apart as well.
func TestCuckooUnmixedKeys(t *testing.T) {
	for _, in := range Unmixed {
		s := cuckooNewSet(t, Share(20_000), 0.01, cuckoo.Options{})
		n := cuckooFill(t, s, in, 0)
		require.GreaterOrEqual(t, n, uint64(Share(20_000)), in.Name)
		cuckooRequireHas(t, s, in, n)
		require.LessOrEqual(t, cuckooMeasure(s, in, n, 100_000).FPR(), 0.012, in.Name)
	}
}

// Hashes made against the family are refused at the worst; a chain does not answer them
// with table after table, and no key is lost.
func TestCuckooHostileKeys(t *testing.T) {
	for _, in := range Hostile {
		s := cuckooNewSet(t, 1000, 0.01, cuckoo.Options{Grow: 2})
		accepted := []uint64{}
		for i := range uint64(3000) {
			if s.AddHash(in.At(i)) == nil {
				accepted = append(accepted, in.At(i))
			}
		}
		t.Logf("%q: %d of 3000 in %d tables", in.Name, len(accepted), s.Tables())
		require.LessOrEqual(t, s.Tables(), 3, in.Name)
		for _, h := range accepted {
			require.True(t, s.ContainsHash(h), in.Name)
		}
	}
}

func TestCuckooAddNew(t *testing.T) {
	for _, guard := range []bool{false, true} {
		s := cuckooNewSet(t, 100, 0.001, cuckoo.Options{Guard: guard})
		added, err := s.AddNew([]byte("a"))
		require.NoError(t, err)
		require.True(t, added)
		added, err = s.AddNew([]byte("a"))
		require.NoError(t, err)
		require.False(t, added)
		require.Equal(t, 1, s.Count([]byte("a")))
		cuckooFill(t, s, Good(1), 0)
		refused := 0
		for i := range uint64(300) {
			if added, err := s.AddNewHash(Good(2).At(i)); err != nil {
				require.ErrorIs(t, err, cuckoo.ErrFull)
				require.False(t, added)
				refused++
			}
		}
		require.Positive(t, refused)
	}
}

// Without a guard, removing what was never added may take another key away, as
// documented; with one it never does.
func TestCuckooGuard(t *testing.T) {
	in := Good(1)
	for _, guard := range []bool{false, true} {
		s := cuckooNewSet(t, 5000, 0, cuckoo.Options{Bits: 6, Guard: guard})
		for i := range uint64(5000) {
			require.NoError(t, s.AddHash(in.At(i)))
		}
		wrong := 0
		for i := range uint64(5000) {
			if s.RemoveHash(in.At(100_000 + i)) {
				wrong++
			}
		}
		lost := 0
		for i := range uint64(5000) {
			if !s.ContainsHash(in.At(i)) {
				lost++
			}
		}
		require.Equal(t, guard, wrong == 0)
		require.Equal(t, guard, lost == 0)
		require.Equal(t, 5000-wrong, s.Len())
	}
}

// Keys that come and go leave a set of one size at one size, however long.
func TestCuckooChurnDoesNotGrow(t *testing.T) {
	in := Good(1)
	const live = 2000
	s := cuckooNewSet(t, 1000, 0.001, cuckoo.Options{Grow: 2})
	most := 0
	for i := range uint64(20 * live) {
		require.NoError(t, s.AddHash(in.At(i)))
		if i >= live {
			require.True(t, s.RemoveHash(in.At(i-live)))
			most = max(most, s.Tables())
		}
	}
	require.Equal(t, live, s.Len())
	require.LessOrEqual(t, most, 3)
	require.LessOrEqual(t, s.FalsePositiveRate(), 0.001)
}

// A chain ends when fingerprints cannot become longer; it is then full, and not broken.
func TestCuckooChainEnds(t *testing.T) {
	s := cuckooNewSet(t, 50, 0, cuckoo.Options{Bits: 29, Grow: 1})
	n := cuckooFill(t, s, Good(1), 0)
	require.Equal(t, 4, s.Tables())
	require.GreaterOrEqual(t, n, uint64(200))
	cuckooRequireHas(t, s, Good(1), n)
}

func TestCuckooReset(t *testing.T) {
	for _, grow := range []int{0, 1} {
		s := cuckooNewSet(t, 100, 0.01, cuckoo.Options{Grow: grow, Guard: true})
		for i := range uint64(100 * (1 + 2*grow)) {
			require.NoError(t, s.AddHash(Good(1).At(i)))
		}
		s.Reset()
		require.Zero(t, s.Len())
		require.Zero(t, s.LoadFactor())
		require.Equal(t, 1, s.Tables())
		require.False(t, s.RemoveHash(Good(1).At(0)))
		fresh := cuckooNewSet(t, 100, 0.01, cuckoo.Options{Grow: grow, Guard: true})
		for i := range uint64(50) {
			require.NoError(t, s.AddHash(Good(1).At(i)))
			require.NoError(t, fresh.AddHash(Good(1).At(i)))
		}
		require.Equal(t, Bytes(t, fresh), Bytes(t, s), "a reset set is like a new one")
	}
}

func TestCuckooNewSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		n    int64
		rate float64
		o    cuckoo.Options
		want string
	}{
		{0, 0.01, cuckoo.Options{}, "cuckoo: a set is for 1 to 4294967296 keys, not 0"},
		{1 << 40, 0.01, cuckoo.Options{}, "cuckoo: a set is for 1 to 4294967296 keys, not 1099511627776"},
		{10, 0, cuckoo.Options{}, "cuckoo: the rate must be above 0 and below 1, not 0"},
		{10, math.NaN(), cuckoo.Options{}, "cuckoo: the rate must be above 0 and below 1, not NaN"},
		{10, 1, cuckoo.Options{}, "cuckoo: the rate must be above 0 and below 1, not 1"},
		{10, 1e-12, cuckoo.Options{},
			"cuckoo: a rate of 1e-12 needs fingerprints of more than 32 bits; ask for at least 1e-8"},
		{10, 0.01, cuckoo.Options{Slots: 3}, "cuckoo: Options.Slots must be 2, 4 or 8, not 3"},
		{10, 0, cuckoo.Options{Bits: 3}, "cuckoo: Options.Bits must be 4 to 32, not 3"},
		{10, 0, cuckoo.Options{Bits: 33}, "cuckoo: Options.Bits must be 4 to 32, not 33"},
		{10, 0.01, cuckoo.Options{Bits: 8},
			"cuckoo: a rate and Options.Bits were given; one follows from the other, set one to 0"},
		{10, 0.01, cuckoo.Options{Grow: 9}, "cuckoo: Options.Grow must be 0 to 8, not 9"},
		{10, 0, cuckoo.Options{Bits: 32, Grow: 1},
			"cuckoo: fingerprints of 32 bits leave none to grow by; use fewer, a higher rate, or no Options.Grow"},
	} {
		if int64(int(c.n)) != c.n {
			continue // an int of 32 bits cannot be so large
		}
		_, err := cuckoo.New(int(c.n), c.rate, &c.o)
		require.EqualError(t, err, c.want)
	}
	for _, slots := range []int{2, 4, 8} {
		_, err := cuckoo.New(1, 1e-8, &cuckoo.Options{Slots: slots})
		require.NoError(t, err, "the rate that the error recommends")
	}
}
