package cuckoo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

func TestSuite(t *testing.T) {
	filtertest.Suite(t, "cuckoo:12", 1_000_000)
	for _, spec := range []string{
		"cuckoo:4,2", "cuckoo:4", "cuckoo:4,8", "cuckoo:8,2", "cuckoo:8", "cuckoo:8,8", "cuckoo:12,2", "cuckoo:12,8",
		"cuckoo:16", "cuckoo:17", "cuckoo:31,2", "cuckoo:32,2", "cuckoo:32", "cuckoo:32,8",
	} {
		filtertest.Suite(t, spec, 5000)
	}
}

func TestGolden(t *testing.T) {
	filtertest.Golden(t, "cuckoo:12", "cuckoo:4,2", "cuckoo:4", "cuckoo:4,8", "cuckoo:8,2", "cuckoo:8", "cuckoo:8,8", "cuckoo:12,2", "cuckoo:12,8",
		"cuckoo:16", "cuckoo:17", "cuckoo:31,2", "cuckoo:32,2", "cuckoo:32", "cuckoo:32,8")
}

func TestRateIsTheories(t *testing.T) {
	filtertest.MatchesTheory(t, "cuckoo:12", 1_000_000, 4_000_000)
	for _, spec := range []string{
		"cuckoo:4,2", "cuckoo:4", "cuckoo:4,8", "cuckoo:6", "cuckoo:7,8", "cuckoo:8,2", "cuckoo:8", "cuckoo:8,8", "cuckoo:10", "cuckoo:12,2",
		"cuckoo:12,8", "cuckoo:16",
	} {
		filtertest.MatchesTheory(t, spec, 50_000, 1_000_000)
	}
}

func TestUnmixedHashesDoNoHarm(t *testing.T) {
	for _, spec := range []string{"cuckoo:8", "cuckoo:12,2"} {
		filtertest.MixesInput(t, spec, 1000, 200_000, 0.05)
		filtertest.MixesInput(t, spec, 100_000, 200_000, 0.03)
	}
}

// A table fills to its safe load whatever its size: bits per key do not jump at
// powers of two.
func TestAnySizeFills(t *testing.T) {
	for n := 10_000; n < 20_000; n += 777 {
		bits := 8 * float64(len(filtertest.Build(t, "cuckoo:12", filtertest.Good(1), n))) / float64(n)
		require.InDelta(t, 12/0.95, bits, 0.05, "%d keys", n)
	}
}

// One key in a thousand guises, among others, takes one slot and blocks nothing.
func TestManyDuplicatesCostNothing(t *testing.T) {
	const distinct, times = 2000, 20
	b := filtertest.Policy(t, "cuckoo:12").NewBuilder()
	in := filtertest.Good(1)
	for range times {
		for i := range uint64(distinct) {
			b.AddHash(in.At(i))
			b.AddHash(in.At(0))
		}
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	require.InEpsilon(t, len(filtertest.Build(t, "cuckoo:12", in, distinct)), len(data), 0.05)
	f := filtertest.Open(t, "cuckoo:12", data)
	for i := range uint64(distinct) {
		require.True(t, f.MayContainHash(in.At(i)))
	}
}

func TestParseAloneMatchesTheSentinel(t *testing.T) {
	_, err := cuckoo.Parse("12,3")
	require.ErrorIs(t, err, filterpolicy.ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "cuckoo:12,3": slots per bucket must be 2, 4 or 8, not "3"; for example "cuckoo:12,4"`)
}

func FuzzDecode(f *testing.F) {
	filtertest.FuzzDecode(f, "cuckoo:12", "cuckoo:4,2", "cuckoo:31,2", "cuckoo:32,8")
}
