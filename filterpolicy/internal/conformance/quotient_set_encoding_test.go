package conformance

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

// quotientSamples are sets that use every part of the format.
func quotientSamples(tb testing.TB) map[string]*quotient.Set {
	tb.Helper()
	empty, plain := quotientNewSet(tb, 1, 0.01, 0), quotientNewSet(tb, 60, 0.001, 0)
	grown := quotientNewSet(tb, 20, 0.05, 3)
	quotientFill(tb, plain, 0, 60)
	quotientFill(tb, grown, 0, 100)
	quotientFill(tb, grown, 90, 100)
	return map[string]*quotient.Set{"empty": empty, "plain": plain, "grown": grown}
}

func TestQuotientSetGoldenSamples(t *testing.T) {
	Samples(t, "quotient", quotientSamples(t), quotientFamily.Zero)
	for _, s := range quotientSamples(t) {
		var read quotient.Set
		require.NoError(t, read.UnmarshalBinary(Bytes(t, s)))
		require.Equal(t, maps.Collect(s.All()), maps.Collect(read.All()))
	}
}

// What no set writes is refused though the checksum is right.
func TestQuotientSetForgery(t *testing.T) {
	data := Bytes(t, quotientSamples(t)["grown"])
	const blocks = 32
	further := len(data) - frame.Overhead - 16*int(data[PayloadAt+16]) // after the blocks
	Forgeries(t, data, quotientFamily.Zero, []SetForgery{
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
func TestQuotientHostileSets(t *testing.T) {
	for _, s := range quotientSamples(t) {
		HostileSets(t, quotientFamily.Zero, 16, Bytes(t, s))
	}
}

// A set that the decoder accepts works.
func FuzzQuotientSetDecode(f *testing.F) {
	var seeds [][]byte
	for _, s := range quotientSamples(f) {
		seeds = append(seeds, Bytes(f, s))
	}
	fuzzSet(f, quotientFamily.Zero, quotientUse, seeds)
}

// quotientUse does what can be done to quotient sets only, and then what can be done to any.
func quotientUse(tb testing.TB, s *quotient.Set) {
	tb.Helper()
	_ = s.Resize(100)
	_ = s.Merge(s)
	for v, n := range s.All() {
		require.Positive(tb, n, v)
	}
	Use(tb, s)
}
