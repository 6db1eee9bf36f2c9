package hash64

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

func TestDistinctIsASortedSet(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 8, 9, 1000, 100_000} {
		for _, distinct := range []int{1, 2, n/2 + 1, n + 1} {
			var hashes List
			var want []uint64
			for i := range n {
				h := uint64(i%distinct) << (i % distinct % 40)
				hashes.Add(h)
				want = append(want, Seeded(h, 3))
			}
			slices.Sort(want)
			require.True(t, slices.Equal(slices.Compact(want), Distinct(&hashes, 3)), "%d of %d", distinct, n)
		}
	}
}

func TestDistinctOfAnyHashes(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		given := rapid.SliceOf(rapid.Uint64()).Draw(t, "hashes")
		seed := rapid.Uint32().Draw(t, "seed")
		var hashes List
		want := make([]uint64, len(given))
		for i, h := range given {
			hashes.Add(h)
			want[i] = Seeded(h, seed)
		}
		slices.Sort(want)
		require.True(t, slices.Equal(slices.Compact(want), Distinct(&hashes, seed)))
	})
}

// next returns a function that goes through a list.
func next(list []uint64) func() (uint64, bool) {
	return func() (value uint64, ok bool) {
		if len(list) == 0 {
			return 0, false
		}
		value, list = list[0], list[1:]
		return value, true
	}
}

func TestUnionIsASortedList(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		lists := rapid.Custom(func(t *rapid.T) []uint64 {
			list := rapid.SliceOf(rapid.Uint64Range(0, 50)).Draw(t, "list")
			slices.Sort(list)
			return list
		})
		a, b := lists.Draw(t, "a"), lists.Draw(t, "b")
		want := slices.Concat(a, b)
		slices.Sort(want)
		require.True(t, slices.Equal(want, slices.Collect(Union(next(a), next(b)))))
		for i := range want {
			got := []uint64{}
			for v := range Union(next(a), next(b)) {
				if got = append(got, v); len(got) > i {
					break
				}
			}
			require.Equal(t, want[:i+1], got)
		}
	})
}

func BenchmarkDistinct(b *testing.B) {
	const n = 1_000_000
	var hashes List
	for i := range uint64(n) {
		hashes.Add(Seeded(i, 1))
	}
	for b.Loop() {
		Distinct(&hashes, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
}
