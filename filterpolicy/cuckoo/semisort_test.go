package cuckoo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

// semisorted are specs with the fewest and the most bits, and some between.
var semisorted = []string{"cuckoo:5,4,semisort", "cuckoo:6,4,semisort", "cuckoo:8,4,semisort", "cuckoo:17,4,semisort",
	"cuckoo:32,4,semisort"}

func TestSemisortSuite(t *testing.T) {
	filtertest.Suite(t, "cuckoo:12,4,semisort", 200_000)
	for _, spec := range semisorted {
		filtertest.Suite(t, spec, 5000)
	}
}

func TestSemisortGolden(t *testing.T) {
	filtertest.Golden(t, append(semisorted, "cuckoo:12,4,semisort")...)
}

func TestSemisortRateIsTheories(t *testing.T) {
	filtertest.MatchesTheory(t, "cuckoo:12,4,semisort", 200_000, 2_000_000)
	for _, spec := range []string{"cuckoo:5,4,semisort", "cuckoo:8,4,semisort", "cuckoo:16,4,semisort"} {
		filtertest.MatchesTheory(t, spec, 50_000, 500_000)
	}
}

// A semi-sorted filter is four bits per bucket smaller than the plain one: a bit per
// slot, and more than a bit per key since some slots are empty.
func TestSemisortSavesABitPerKey(t *testing.T) {
	const n = 20_000
	for plain, sorted := range map[string]string{"cuckoo:5": "cuckoo:5,4,semisort",
		"cuckoo:12": "cuckoo:12,4,semisort", "cuckoo:32": "cuckoo:32,4,semisort"} {
		without := 8 * float64(len(filtertest.Build(t, plain, filtertest.Good(1), n))) / n
		with := 8 * float64(len(filtertest.Build(t, sorted, filtertest.Good(1), n))) / n
		t.Logf("%s: %.3f bits per key, plain %.3f", sorted, with, without)
		require.InDelta(t, 1/0.95, without-with, 0.001, sorted)

		a, b := filterpolicy.Expected(filtertest.Policy(t, plain), n),
			filterpolicy.Expected(filtertest.Policy(t, sorted), n)
		require.InDelta(t, without-with, a.BitsPerKey-b.BitsPerKey, 1e-9)
		require.InDelta(t, a.FPR, b.FPR, 0)
	}
}

func TestSemisortUnmixedHashesDoNoHarm(t *testing.T) {
	filtertest.MixesInput(t, "cuckoo:8,4,semisort", 10_000, 100_000, 0.05)
}

func TestSemisortSpecs(t *testing.T) {
	p, err := cuckoo.Parse("12,4,semisort")
	require.NoError(t, err)
	require.Equal(t, "cuckoo:12,4,semisort", p.String())
	again, err := cuckoo.Parse("12,4,semisort")
	require.NoError(t, err)
	require.True(t, p == again)
	plain, err := cuckoo.Parse("12,4")
	require.NoError(t, err)
	require.False(t, p == plain)
	require.Equal(t, "cuckoo:12", plain.String())

	for args, want := range map[string]string{
		"4,4,semisort":    `fingerprint bits of semi-sorted buckets must be a whole number from 5 to 32, not "4"`,
		"33,4,semisort":   `fingerprint bits of semi-sorted buckets must be a whole number from 5 to 32, not "33"`,
		"12,2,semisort":   `slots per semi-sorted bucket must be 4, not "2"`,
		"12,8,semisort":   `slots per semi-sorted bucket must be 4, not "8"`,
		"12,132,semisort": `slots per semi-sorted bucket must be 4, not "132"`,
		"12,semisort":     `slots per bucket must be 2, 4 or 8, not "semisort"`,
		"12,,semisort":    `slots per semi-sorted bucket must be 4, not ""`,
		"12,4,semi":       `slots per bucket must be 2, 4 or 8, not "4,semi"`,
		"12,132":          `slots per bucket must be 2, 4 or 8, not "132"`,
	} {
		_, err := cuckoo.Parse(args)
		require.ErrorIs(t, err, filterpolicy.ErrBadSpec, args)
		require.ErrorContains(t, err, want, args)
	}
}

func TestHostileFiltersOfSemisorted(t *testing.T) {
	filtertest.Bounded(t, append(semisorted, "cuckoo:12,4,semisort", "cuckoo:12")...)
}

func FuzzDecodeSemisorted(f *testing.F) {
	filtertest.FuzzDecode(f, append(semisorted, "cuckoo:12,4,semisort", "cuckoo:12")...)
}

func BenchmarkProbeSemisorted(b *testing.B) {
	const n = 100_000
	for _, spec := range []string{"cuckoo:12", "cuckoo:12,4,semisort", "cuckoo:32,4,semisort"} {
		filter := filtertest.Open(b, spec, filtertest.Build(b, spec, filtertest.Good(1), n))
		for name, in := range map[string]filtertest.Input{"present": filtertest.Good(1), "absent": filtertest.Good(2)} {
			b.Run(spec+"/"+name, func(b *testing.B) {
				i := uint64(0)
				for b.Loop() {
					filter.MayContainHash(in.At(i % n))
					i++
				}
			})
		}
	}
}
