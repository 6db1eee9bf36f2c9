package lookupwatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/lookupsample"
)

// The sample gets scans with the bounds between which they moved. Without a sample and a tracer nothing is wanted.
func TestScansAreSampled(t *testing.T) {
	var w Watch
	var s Scan
	b := func(key string) []byte { return []byte(key) }
	require.False(t, s.Begin(&w, b("a"), nil, nil, false))
	require.False(t, w.Wants(filterpolicy.Hash(b("a"))))

	w.StartSample(lookupsample.MinBytes, 0, func() uint64 { return 0 })
	for _, c := range []struct {
		key, lower, upper []byte
		backward          bool
		start, end        []byte
	}{
		{nil, nil, nil, false, nil, nil},
		{b("b"), nil, b("x"), false, b("b"), b("x")},
		{b("a"), b("b"), nil, false, b("b"), nil},
		{nil, b("b"), b("x"), false, b("b"), b("x")},
		{nil, nil, nil, true, nil, nil},
		{b("y"), b("b"), b("x"), true, b("x"), b("b")},
		{b(""), nil, b("x"), true, b(""), nil},
		{b(""), nil, nil, false, b(""), nil},
	} {
		if len(c.key) == 0 {
			s = Scan{} // no memory of another scan
		}
		require.True(t, s.Begin(&w, c.key, c.lower, c.upper, c.backward))
		s.End(7, true, false)
		scans := w.Sampler().Take().Scans
		require.Equal(t, lookupsample.Scan{Start: c.start, End: c.end, Entries: 7, Backward: c.backward, Ended: true},
			scans[len(scans)-1])
	}
}

// A Watch tells the sample of lookups, one by one or as keys of a MultiGet.
// A scan keeps its start in the memory of the one before.
func TestScansOfOneIteratorShareTheirStart(t *testing.T) {
	var w Watch
	var s Scan
	w.StartSample(lookupsample.MinBytes, 0, func() uint64 { return 0 })
	key := []byte("a key that is longer than what the compiler puts on the stack")
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Begin(&w, key, nil, nil, false) }))
}

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
