package quotient_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/envelope"
	"github.com/siftkv/siftkv/filterpolicy/internal/settest"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

// samples are sets that use every part of the format.
func samples(tb testing.TB) map[string]*quotient.Set {
	tb.Helper()
	empty, plain, grown := newSet(tb, 1, 0.01, 0), newSet(tb, 60, 0.001, 0), newSet(tb, 20, 0.05, 3)
	fill(tb, plain, 0, 60)
	fill(tb, grown, 0, 100)
	fill(tb, grown, 90, 100)
	return map[string]*quotient.Set{"empty": empty, "plain": plain, "grown": grown}
}

func TestSetSamples(t *testing.T) {
	settest.Samples(t, samples(t), family.Zero)
	for _, s := range samples(t) {
		var read quotient.Set
		require.NoError(t, read.UnmarshalBinary(settest.Bytes(t, s)))
		require.Equal(t, maps.Collect(s.All()), maps.Collect(read.All()))
	}
}

// What no set writes is refused though the checksum is right.
func TestSetForgery(t *testing.T) {
	data := settest.Bytes(t, samples(t)["grown"])
	const blocks = 32
	further := len(data) - envelope.Overhead - 16*int(data[settest.PayloadAt+16]) // behind the blocks
	settest.Forgeries(t, data, family.Zero, []settest.Forgery{
		{At: 0, To: 0, Want: "parameters"},
		{At: 7, To: 0xff, Want: "parameters"},
		{At: 6, To: 1, Want: "do not hold"},
		{At: 8, To: 1, Want: "not those of"},
		{At: 16, To: 9, Want: "do not hold"},
		{At: 23, To: 1, Want: "counts"},
		{At: 24, To: 0, Want: "parameters"},
		{At: 24, To: 57, Want: "parameters"},
		{At: 24, To: 7, Want: "do not hold"},
		{At: 25, To: 0, Want: "parameters"},
		{At: 25, To: 57, Want: "parameters"},
		{At: 26, To: 1, Want: "parameters"},
		{At: blocks, To: 0xff, Want: "not those of"},
		{At: further + 8, To: 0, Want: "or none"},
		{At: further + 15, To: 0xff, Want: "more than can be"},
		{At: further + 7, To: 0x10, Want: "not there"},
		{At: further + 16, To: 0xff, Want: "not there"},
	}...)
}

// A set that is full doubles.
func TestHostileSets(t *testing.T) {
	for _, s := range samples(t) {
		settest.Hostile(t, family.Zero, 16, settest.Bytes(t, s))
	}
}

// A set that the decoder accepts works.
func FuzzSetDecode(f *testing.F) {
	var seeds [][]byte
	for _, s := range samples(f) {
		seeds = append(seeds, settest.Bytes(f, s))
	}
	settest.Fuzz(f, family.Zero, use, seeds)
}

// use does what can be done to quotient sets only, and then what can be done to any.
func use(tb testing.TB, s *quotient.Set) {
	tb.Helper()
	_ = s.Resize(100)
	_ = s.Merge(s)
	for v, n := range s.All() {
		require.Positive(tb, n, v)
	}
	settest.Use(tb, s)
}
