package conformance

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
)

// There is no false "no", whatever the keys and the bounds.
func TestRangesOfKeysAreNeverDenied(t *testing.T) {
	mostLong := 65
	if scale.Long() {
		mostLong = 129
	}
	eachRangeSpec(t, func(t *testing.T, spec string) {
		for _, kind := range keyKinds {
			t.Run(kind.name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 128, 129, Share(1500)} {
					if kind.name == "of 64 KiB" && n > mostLong {
						continue
					}
					list := kind.sorted(r, n)
					f := OpenRange(t, spec, BuildRange(t, spec, list))
					neighbours(t, f, list)
					bounds(t, f, kind, r, list)
				}
			})
		}
	})
}

// neighbours asks for each key by the narrowest ranges, and those that end at it.
func neighbours(t *testing.T, f filterpolicy.RangeFilter, list [][]byte) {
	t.Helper()
	for i, key := range list {
		next := append(slices.Clone(key), 0)
		mayContain(t, f, list, key, next)
		mayContain(t, f, list, key, nil)
		mayContain(t, f, list, nil, next)
		if i > 0 {
			mayContain(t, f, list, append(slices.Clone(list[i-1]), 0), next)
			mayContain(t, f, list, list[i-1], key)
		}
	}
}

// bounds asks for ranges with bounds of all kinds.
func bounds(t *testing.T, f filterpolicy.RangeFilter, kind keyKind, r *rand.Rand, list [][]byte) {
	t.Helper()
	for range Share(300) {
		mayContain(t, f, list, kind.bound(r, list), kind.bound(r, list))
	}
}

// mayContain asks for a range: the answer must be true if a key is there, and false if none can be.
func mayContain(t *testing.T, f filterpolicy.RangeFilter, list [][]byte, lo, hi []byte) {
	t.Helper()
	switch got := f.MayContainRange(lo, hi); {
	case !got && within(list, lo, hi):
		require.Fail(t, "false negative", "%d keys, [%.200q, %.200q)", len(list), lo, hi)
	case got && empty(lo, hi):
		require.Fail(t, "true for no key at all", "%d keys, [%.200q, %.200q)", len(list), lo, hi)
	}
}

// What no builder adds is not there: no keys, and ranges outside of what all keys begin with.
func TestRangesOutsideAreDenied(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		f := OpenRange(t, spec, BuildRange(t, spec, nil))
		require.False(t, f.MayContainRange(nil, nil))
		require.False(t, f.MayContainRange([]byte{}, []byte("z")))

		list := [][]byte{[]byte("user1"), []byte("user2"), []byte("user22")}
		f = OpenRange(t, spec, BuildRange(t, spec, list))
		for _, c := range []struct{ lo, hi string }{
			{"", "user"}, {"a", "b"}, {"use", "user"}, {"uses", "z"}, {"v", "w"}, {"user\xff", "v"}, {"user3", "z"},
		} {
			require.False(t, f.MayContainRange([]byte(c.lo), []byte(c.hi)), "%q", c)
		}
		require.False(t, f.MayContainRange(nil, []byte{}))
		require.False(t, f.MayContainRange(nil, []byte("user")))
		require.False(t, f.MayContainRange([]byte("v"), nil))
		require.True(t, f.MayContainRange(nil, nil))
		require.True(t, f.MayContainRange([]byte{}, []byte("v")))
	})
}

// Keys that are equal to the one before are free, wherever the builder is.
func TestRangeBuildersTakeEqualKeysAndAreReused(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		r := rand.New(rand.NewPCG(3, 4))
		b := RangePolicy(t, spec).NewRangeBuilder()
		for _, kind := range keyKinds {
			list := slices.CompactFunc(kind.sorted(r, 100), bytes.Equal)
			want := BuildRange(t, spec, list)
			for _, key := range list {
				mine := slices.Clone(key)
				b.AddKey(mine)
				b.AddKey(slices.Clone(key))
				clear(mine) // the caller may
			}
			data, ok := b.Finish([]byte("before"))
			require.True(t, ok)
			require.Equal(t, "before", string(data[:6]))
			require.Equal(t, want, data[6:], kind.name)
		}
	})
}

// A file whose keys are not in order gets no filter; the next one does.
func TestRangeBuildersDeclineKeysThatFall(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		for _, falls := range [][]string{{"b", "a"}, {"ab", "a"}, {"a", ""}, {"a", "b", "ab", "c"}} {
			b := RangePolicy(t, spec).NewRangeBuilder()
			for _, key := range falls {
				b.AddKey([]byte(key))
			}
			data, ok := b.Finish([]byte("x"))
			require.False(t, ok, "%q", falls)
			require.Equal(t, "x", string(data))
			b.AddKey([]byte("a"))
			data, ok = b.Finish(nil)
			require.True(t, ok)
			require.Equal(t, BuildRange(t, spec, [][]byte{[]byte("a")}), data)
		}
	})
}

func TestRangeFiltersAtAnyAlignment(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		list := keyKinds[0].sorted(rand.New(rand.NewPCG(5, 6)), 500)
		data := BuildRange(t, spec, list)
		for offset := range 9 {
			moved := append(make([]byte, offset, offset+len(data)), data...)[offset:]
			neighbours(t, OpenRange(t, spec, moved), list)
		}
	})
}

func TestRangeQueriesDoNotAllocate(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		for _, kind := range keyKinds {
			r := rand.New(rand.NewPCG(7, 8))
			list := kind.sorted(r, 200)
			f := OpenRange(t, spec, BuildRange(t, spec, list))
			lo, hi := kind.bound(r, list), kind.bound(r, list)
			require.Zero(t, testing.AllocsPerRun(10, func() {
				f.MayContainRange(lo, hi)
				f.MayContainRange(nil, hi)
				f.MayContainRange(list[50], list[51])
			}), kind.name)
		}
	})
}

func TestRangeFiltersOfManyGoroutines(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		list := keyKinds[0].sorted(rand.New(rand.NewPCG(9, 10)), Share(4000))
		f := OpenRange(t, spec, BuildRange(t, spec, list))
		for range 4 {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				neighbours(t, f, list)
			})
		}
	})
}

func TestExpectedRangeAtTheEdges(t *testing.T) {
	require.Equal(t, filterpolicy.Expectation{BitsPerKey: 0, FPR: 1, OK: true},
		filterpolicy.ExpectedRange(RangePolicy(t, "none"), 1000))
	eachRangeSpec(t, func(t *testing.T, spec string) {
		p := RangePolicy(t, spec)
		require.Equal(t, filterpolicy.Expectation{OK: true}, filterpolicy.ExpectedRange(p, 0))
		require.False(t, filterpolicy.ExpectedRange(p, -1).OK)
		require.False(t, filterpolicy.ExpectedRange(nil, 1).OK)
		last := math.Inf(1)
		for n := 1; n <= 100_000_000; n *= 10 {
			e := filterpolicy.ExpectedRange(p, n)
			require.True(t, e.OK)
			require.Less(t, e.BitsPerKey, 1.02*last, "%d keys", n) // it swings with the logarithm
			require.True(t, e.FPR >= 0 && e.FPR < 0.75, "%d keys: %v", n, e.FPR)
			last = e.BitsPerKey
		}
	})
}
