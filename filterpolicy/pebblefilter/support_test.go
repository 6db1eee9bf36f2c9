package pebblefilter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// parse returns the policy of a spec.
func parse(tb testing.TB, spec string) filterpolicy.Policy {
	tb.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(tb, err)
	return p
}

// build encodes the filter of the hashes hashOf(1, 0) to hashOf(1, n-1).
func build(tb testing.TB, spec string, n uint64) []byte {
	tb.Helper()
	b := parse(tb, spec).NewBuilder()
	for i := range n {
		b.AddHash(hashOf(1, i))
	}
	data, ok := b.Finish(nil)
	require.True(tb, ok)
	return data
}

// decode opens an encoded filter.
func decode(tb testing.TB, spec string, data []byte) filterpolicy.Filter {
	tb.Helper()
	f, err := filterpolicy.Decode(parse(tb, spec).Name(), data)
	require.NoError(tb, err)
	return f
}

// hashOf returns well-mixed hashes, disjoint ones for different salts: the finalizer of
// MurmurHash3.
func hashOf(salt, i uint64) uint64 {
	h := i ^ salt<<40
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
