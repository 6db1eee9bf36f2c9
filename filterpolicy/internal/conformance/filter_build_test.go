package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/scale"
)

// Share returns the part of n that a test takes: all of it if tests are long.
func Share(n int) int { return scale.Count(n/5, n) }

// mostKeys is the number of keys that a filter of a test may have.
func mostKeys() int { return scale.Count(100_000, 100_000_000) }

// Affordable returns the numbers of keys that a filter of a test may have.
func Affordable(sizes ...int) []int {
	return slices.DeleteFunc(sizes, func(n int) bool { return n > mostKeys() })
}

// Policy parses a spec that must be right.
func Policy(tb testing.TB, spec string) filterpolicy.Policy {
	tb.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(tb, err)
	return p
}

// Build encodes the filter of n keys, which must succeed.
func Build(tb testing.TB, spec string, in Input, n int) []byte {
	tb.Helper()
	data, ok := tryBuild(Policy(tb, spec).NewBuilder(), in, n)
	require.True(tb, ok, "%s declined %d keys of %q", spec, n, in.Name)
	return data
}

// BitsPerKey returns the size of the filter of n keys over their number.
func BitsPerKey(tb testing.TB, spec string, in Input, n int) float64 {
	tb.Helper()
	return 8 * float64(len(Build(tb, spec, in, n))) / float64(n)
}

func tryBuild(b filterpolicy.Builder, in Input, n int) (data []byte, ok bool) {
	for i := range uint64(n) {
		b.AddHash(in.At(i))
	}
	return b.Finish(nil)
}

// Open decodes a filter that must be sound.
func Open(tb testing.TB, spec string, data []byte) filterpolicy.Filter {
	tb.Helper()
	f, err := filterpolicy.Decode(Policy(tb, spec).Name(), data)
	require.NoError(tb, err)
	return f
}

// prober returns the family's probe of encoded bytes.
func prober(tb testing.TB, spec string) func(data []byte, h uint64) bool {
	tb.Helper()
	probe, ok := filterpolicy.Probe(Policy(tb, spec).Name())
	require.True(tb, ok)
	return probe
}

// requireAll checks that a filter, decoded or not, has the first n keys of an
// input.
func requireAll(t *testing.T, spec string, data []byte, in Input, n int) {
	t.Helper()
	f, probe := Open(t, spec, data), prober(t, spec)
	for i := range uint64(n) {
		if h := in.At(i); !f.MayContainHash(h) || !probe(data, h) {
			require.Fail(t, "false negative", "%s: key %d of %d of %q, hash %#x", spec, i, n, in.Name, h)
		}
	}
}
