package lookupwatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookupsample"
	"github.com/siftkv/siftkv/internal/racebuild"
)

// The sample gets scans with the bounds between which they moved. Without a sample and a tracer nothing is wanted.
func TestScansAreSampled(t *testing.T) {
	var w Watch
	var s Scan
	b := func(key string) []byte { return []byte(key) }
	require.False(t, s.Begin(&w, b("a"), nil, nil, false))
	require.False(t, w.Wants(filterpolicy.Hash(b("a"))))

	w.StartSample(lookupsample.MinBytes, 0, func() uint64 { return 0 })
	var want []lookupsample.Scan
	for n, c := range []struct {
		key, lower, upper []byte
		backward          bool
		start, end        []byte
	}{
		{nil, nil, nil, false, nil, nil},
		{b("bat"), nil, b("x"), false, b("bat"), b("x")},
		{b("c"), nil, b("x"), false, b("c"), b("x")}, // in the memory of a longer key
		{b(""), nil, b("x"), true, b(""), nil},       // in the memory of another key, an empty one is not nil
		{b("a"), b("bee"), nil, false, b("bee"), nil},
		{nil, nil, nil, true, nil, nil},
		{b(""), nil, nil, false, b(""), nil}, // without memory
		{nil, b("b"), b("x"), false, b("b"), b("x")},
		{b("y"), b("b"), b("xyz"), true, b("xyz"), b("b")},
	} {
		require.True(t, s.Begin(&w, c.key, c.lower, c.upper, c.backward))
		s.End(uint64(n), true, false)
		want = append(want,
			lookupsample.Scan{Start: c.start, End: c.end, Entries: uint64(n), Backward: c.backward, Ended: true})
	}
	require.Equal(t, want, w.Sampler().Take().Scans)
}

// A scan keeps its start in the memory of the one before.
func TestScansOfOneIteratorShareTheirStart(t *testing.T) {
	var w Watch
	var s Scan
	w.StartSample(lookupsample.MinBytes, 0, func() uint64 { return 0 })
	key := make([]byte, 64) // fills a size class of the allocator
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Begin(&w, key, nil, nil, false) }))
	if racebuild.Enabled {
		return // slices.Grow allocates a second time with the race detector
	}
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		s = Scan{}
		s.Begin(&w, key, nil, nil, false)
	}), "the first scan")
}

// A Watch tells the sample of lookups, one by one or as keys of a MultiGet.
func TestLookupsAreSampled(t *testing.T) {
	var w Watch
	w.TraceMany([][]byte{{1}}, [][]byte{nil})
	w.SampleKey(nil, 0, true)
	require.Nil(t, w.Sampler())
	w.StartSample(lookupsample.MinBytes, 0, func() uint64 { return 2 })
	hash := filterpolicy.Hash([]byte("a"))
	require.True(t, w.Wants(hash))
	w.Lookup([]byte("a"), hash, true, true)
	w.SampleKey([]byte("a"), hash, true)
	require.Len(t, w.Sampler().Take().Lookups, 2)
}
