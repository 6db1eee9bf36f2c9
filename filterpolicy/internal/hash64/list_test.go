package hash64

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func all(s *List) (list []uint64) {
	for chunk := range s.Chunks() {
		list = append(list, chunk...)
	}
	return list
}

func TestKeepsOrderAcrossChunks(t *testing.T) {
	var s List
	for _, n := range []int{0, 1, firstLen, firstLen + 1, firstLen + chunkLen, firstLen + chunkLen + 1, 3 * chunkLen} {
		want := make([]uint64, n)
		for i := range want {
			want[i] = uint64(i)
			s.Add(uint64(i))
		}
		require.Equal(t, n, s.Len())
		require.True(t, slices.Equal(want, all(&s)), "%d hashes", n)
		s.Reset()
		require.Zero(t, s.Len())
		require.Empty(t, all(&s))
	}
}

func TestDropsConsecutiveDuplicatesOnly(t *testing.T) {
	var s List
	for _, h := range []uint64{0, 0, 5, 5, 5, 0, 5, 0, 0} {
		s.Add(h)
	}
	require.Equal(t, []uint64{0, 5, 0, 5, 0}, all(&s))
	s.Reset()
	s.Add(0) // the last hash of the file before is forgotten
	require.Equal(t, 1, s.Len())
}

func TestChunksStopsWhenAsked(t *testing.T) {
	var s List
	for i := range uint64(2 * chunkLen) {
		s.Add(i)
	}
	seen := 0
	for range s.Chunks() {
		seen++
		break
	}
	require.Equal(t, 1, seen)
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var s List
			for b.Loop() {
				for i := range uint64(n) {
					s.Add(i)
				}
				s.Reset()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
		})
	}
}
