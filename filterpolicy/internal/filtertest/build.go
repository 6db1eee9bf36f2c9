package filtertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Policy parses a spec that must be right.
func Policy(t testing.TB, spec string) filterpolicy.Policy {
	t.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(t, err)
	return p
}

// Build encodes the filter of n keys, which must succeed.
func Build(t testing.TB, spec string, in Input, n int) []byte {
	t.Helper()
	data, ok := tryBuild(Policy(t, spec).NewBuilder(), in, n)
	require.True(t, ok, "%s declined %d keys of %q", spec, n, in.Name)
	return data
}

func tryBuild(b filterpolicy.Builder, in Input, n int) (data []byte, ok bool) {
	for i := range uint64(n) {
		b.AddHash(in.At(i))
	}
	return b.Finish(nil)
}

// Open decodes a filter that must be sound.
func Open(t testing.TB, spec string, data []byte) filterpolicy.Filter {
	t.Helper()
	f, err := filterpolicy.Decode(Policy(t, spec).Name(), data)
	require.NoError(t, err)
	return f
}

// prober returns the family's probe of encoded bytes.
func prober(t testing.TB, spec string) func(data []byte, h uint64) bool {
	t.Helper()
	probe, ok := filterpolicy.Probe(Policy(t, spec).Name())
	require.True(t, ok)
	return probe
}

// requireAll checks that a filter, decoded or not, has the first n keys of an input.
func requireAll(t testing.TB, spec string, data []byte, in Input, n int) {
	t.Helper()
	f, probe := Open(t, spec, data), prober(t, spec)
	for i := range uint64(n) {
		if h := in.At(i); !f.MayContainHash(h) || !probe(data, h) {
			require.Fail(t, "false negative", "%s: key %d of %d of %q, hash %#x", spec, i, n, in.Name, h)
		}
	}
}
