package conformance

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// rangeSpecs holds, for each family of range filters that writes bytes, a usual spec and then
// others of another layout.
var rangeSpecs = map[string][]string{
	"cut": {"cut:6", "cut:0", "cut:16"},
}

// eachRangeSpec calls f with all specs of rangeSpecs; a family that it does not know fails the test.
func eachRangeSpec(t *testing.T, f func(t *testing.T, spec string)) {
	t.Helper()
	for _, name := range filterpolicy.RangeFamilies() {
		if name == none.Name {
			continue
		}
		require.NotEmpty(t, rangeSpecs[name], "rangeSpecs lacks %s", name)
		for _, spec := range rangeSpecs[name] {
			t.Run(spec, func(t *testing.T) { f(t, spec) })
		}
	}
}

// RangePolicy parses a spec that must be right.
func RangePolicy(tb testing.TB, spec string) filterpolicy.RangePolicy {
	tb.Helper()
	p, err := filterpolicy.ParseRange(spec)
	require.NoError(tb, err)
	return p
}

// BuildRange encodes the range filter of some keys in order, which must succeed.
func BuildRange(tb testing.TB, spec string, list [][]byte) []byte {
	tb.Helper()
	b := RangePolicy(tb, spec).NewRangeBuilder()
	addKeys(b, list)
	data, ok := b.Finish(nil)
	require.True(tb, ok, "%s declined %d keys", spec, len(list))
	return data
}

func addKeys(b filterpolicy.RangeBuilder, list [][]byte) {
	for _, key := range list {
		b.AddKey(key)
	}
}

// OpenRange decodes a range filter that must be sound.
func OpenRange(tb testing.TB, spec string, data []byte) filterpolicy.RangeFilter {
	tb.Helper()
	f, err := filterpolicy.DecodeRange(RangePolicy(tb, spec).Name(), data)
	require.NoError(tb, err)
	return f
}

// within reports whether a key of a sorted list is in [lo, hi).
func within(list [][]byte, lo, hi []byte) bool {
	i, _ := slices.BinarySearchFunc(list, lo, bytes.Compare)
	return i < len(list) && (hi == nil || bytes.Compare(list[i], hi) < 0)
}

// empty reports whether no byte string is in [lo, hi).
func empty(lo, hi []byte) bool { return hi != nil && bytes.Compare(lo, hi) >= 0 }
