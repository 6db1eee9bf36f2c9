package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
)

// A semi-sorted filter is four bits per bucket smaller than the plain one: a bit per
// slot, and more than a bit per key since some slots are empty.
func TestCuckooSemisortSavesABitPerKey(t *testing.T) {
	const n = 20_000
	for plain, sorted := range map[string]string{"cuckoo:5": "cuckoo:5,4,semisort",
		"cuckoo:12": "cuckoo:12,4,semisort", "cuckoo:32": "cuckoo:32,4,semisort"} {
		without := 8 * float64(len(Build(t, plain, Good(1), n))) / n
		with := 8 * float64(len(Build(t, sorted, Good(1), n))) / n
		t.Logf("%s: %.3f bits per key, plain %.3f", sorted, with, without)
		require.InDelta(t, 1/0.95, without-with, 0.001, sorted)

		a, b := filterpolicy.Expected(Policy(t, plain), n),
			filterpolicy.Expected(Policy(t, sorted), n)
		require.InDelta(t, without-with, a.BitsPerKey-b.BitsPerKey, 1e-9)
		require.InDelta(t, a.FPR, b.FPR, 0)
	}
}

func TestCuckooSemisortSpecs(t *testing.T) {
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

func BenchmarkCuckooProbeSemisorted(b *testing.B) {
	const n = 100_000
	for _, spec := range []string{"cuckoo:12", "cuckoo:12,4,semisort", "cuckoo:32,4,semisort"} {
		filter := Open(b, spec, Build(b, spec, Good(1), n))
		for name, in := range map[string]Input{"present": Good(1), "absent": Good(2)} {
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
