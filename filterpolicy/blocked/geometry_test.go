package blocked_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/internal/property"
)

// setBits sets the bits of a spot in lines that are no Set's, and reports whether one was clear.
func setBits(lines []byte, s blocked.Spot, probes int) (changed bool) {
	line := lines[s.Line(len(lines)/blocked.LineLen)*blocked.LineLen:][:blocked.LineLen]
	for _, p := range s.Bits(nil, probes) {
		changed = changed || line[p/8]>>(p%8)&1 == 0
		line[p/8] |= 1 << (p % 8)
	}
	return changed
}

// Lines that are filled and read by spots are those of a set, in every bit and every answer.
func TestSpotsAreWhereASetKeepsItsBits(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		probes := rapid.IntRange(1, blocked.MaxProbes).Draw(t, "probes")
		lines := make([]byte, rapid.IntRange(1, 20).Draw(t, "lines")*blocked.LineLen)
		set, err := blocked.FromLines(make([]byte, len(lines)), probes, 0, 1)
		require.NoError(t, err)
		for _, h := range rapid.SliceOfN(rapid.Uint64(), 1, 300).Draw(t, "hashes") {
			there := !setBits(slices.Clone(lines), blocked.Locate(h), probes)
			require.Equal(t, there, set.ContainsHash(h), "hash %#x", h)
			require.Equal(t, setBits(lines, blocked.Locate(h), probes), set.AddNewHash(h), "hash %#x", h)
		}
		require.Equal(t, lines, set.Lines())
	})
}

func TestBitsAppend(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := blocked.Locate(rapid.Uint64().Draw(t, "hash"))
		all := s.Bits(nil, blocked.MaxProbes)
		require.Len(t, all, blocked.MaxProbes)
		require.Less(t, slices.Max(all), uint16(8*blocked.LineLen))
		for probes := range blocked.MaxProbes {
			require.Equal(t, append([]uint16{9999}, all[:probes]...), s.Bits([]uint16{9999}, probes))
		}
	})
}

// The lines of a part are neighbours, in the order that they have in the whole.
func TestPartsNest(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := blocked.Locate(rapid.Uint64().Draw(t, "hash"))
		parts := rapid.IntRange(1, 1<<20).Draw(t, "parts")
		n := rapid.IntRange(1, 1<<10).Draw(t, "lines of a part")
		part, within := s.Split(parts)
		line, _ := bits.Mul64(within, uint64(n))
		require.Equal(t, s.Line(parts*n), part*n+int(line))
		require.Equal(t, s.Line(parts), part)
	})
}

func TestShapeIsThatOfNew(t *testing.T) {
	for _, n := range []int{1, 50, 52, 1000, 123_456} {
		for _, rate := range []float64{0.9, 0.1, 0.01, 0.001, 1e-6, 1e-9, 2} {
			lines, probes, err := blocked.Shape(n, rate)
			set, refused := blocked.New(n, rate)
			require.Equal(t, refused, err, "%d keys at %g", n, rate)
			if err != nil {
				continue
			}
			require.Equal(t, set.Size(), lines*blocked.LineLen)
			require.Equal(t, set.Probes(), probes)
			require.LessOrEqual(t, blocked.Rate(float64(n), lines, probes), rate, "%d keys", n)
		}
	}
	_, _, err := blocked.Shape(0, 0.01)
	require.ErrorContains(t, err, "capacity must be")
}

func TestRateGrowsFromNoneToOne(t *testing.T) {
	for _, lines := range []int{1, 2, 100} {
		for _, probes := range []int{1, 6, blocked.MaxProbes} {
			require.Zero(t, blocked.Rate(0, lines, probes))
			before := 0.0
			for _, perLine := range []float64{1, 2.5, 50, 500, 9999, 10_000, 1e15} {
				rate := blocked.Rate(perLine*float64(lines), lines, probes)
				require.GreaterOrEqual(t, rate, before-1e-7, "%g keys in each of %d lines", perLine, lines)
				before = rate
			}
			require.Equal(t, 1.0, before)
			require.InDelta(t, 1, blocked.Rate(9999*float64(lines), lines, probes), 1e-6)
		}
	}
}

// An estimate is no whole number: the rate goes up with it, without steps.
func TestRateOfAnEstimate(t *testing.T) {
	for _, lines := range []int{1, 2, 3, 1000} {
		last := blocked.Rate(1e-16, lines, 6)
		require.InDelta(t, 0, last, 1e-15)
		for n := 1e-3; n < 6; n *= 1.01 {
			rate := blocked.Rate(n, lines, 6)
			require.GreaterOrEqual(t, rate, last, "%g keys in %d lines", n, lines)
			if n > 1e-3 {
				require.LessOrEqual(t, rate, 1.5*last, "%g keys in %d lines", n, lines)
			}
			last = rate
		}
		require.Positive(t, last)
	}
}

// Sets that hold fewer keys than they were made for, as many and more have the rate of theory.
func TestRateIsThatOfSets(t *testing.T) {
	const capacity = 100_000
	set, err := blocked.New(capacity, 0.01)
	require.NoError(t, err)
	lines := len(set.Lines()) / blocked.LineLen
	for h := range uint64(2 * capacity) {
		if h == capacity/2 || h == capacity || h == 3*capacity/2 {
			theory := blocked.Rate(float64(h), lines, set.Probes())
			require.InEpsilon(t, set.FalsePositiveRate(), theory, 0.05, "%d keys", h)
		}
		set.AddHash(h)
	}
}

// A set of another's lines is its equal in all that it says, and goes on from there.
func TestFromLinesRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 500).Draw(t, "capacity")
		set, err := blocked.New(n, rapid.SampledFrom([]float64{0.3, 0.01, 1e-5}).Draw(t, "rate"))
		require.NoError(t, err)
		for _, h := range rapid.SliceOf(rapid.Uint64()).Draw(t, "hashes") {
			set.AddHash(h)
		}
		again, err := blocked.FromLines(slices.Clone(set.Lines()), set.Probes(), set.Len(), set.Cap())
		require.NoError(t, err)
		require.Equal(t, set, again)
		require.NoError(t, again.Merge(set))
		h := rapid.Uint64().Draw(t, "another")
		require.Equal(t, set.AddNewHash(h), again.AddNewHash(h))
		require.Equal(t, set.Lines(), again.Lines())
	})
}

func TestLinesAreNotACopy(t *testing.T) {
	lines := make([]byte, 2*blocked.LineLen, 5*blocked.LineLen)
	set, err := blocked.FromLines(lines, 6, 0, 100)
	require.NoError(t, err)
	require.Equal(t, len(lines), cap(set.Lines()), "what follows the lines is not the set's")
	set.AddHash(1)
	require.Equal(t, lines, set.Lines())
	require.False(t, setBits(lines, blocked.Locate(1), 6), "the caller's bytes are the set's")
	require.True(t, setBits(set.Lines(), blocked.Locate(2), 6))
	require.True(t, set.ContainsHash(2))

	var zero blocked.Set
	require.Empty(t, zero.Lines())
	require.Zero(t, zero.Probes())
}

func TestFromLinesRefuses(t *testing.T) {
	for _, c := range []struct {
		length, probes, keys int
		capacity             int64
		want                 string
	}{
		{0, 6, 0, 1, "0 bytes are not the lines of a blocked set"},
		{63, 6, 0, 1, "63 bytes are not the lines"},
		{129, 6, 0, 1, "129 bytes are not the lines"},
		{64, 0, 0, 1, "with 0 probes cannot be"},
		{64, -1, 0, 1, "with -1 probes cannot be"},
		{64, blocked.MaxProbes + 1, 0, 1, "with 15 probes cannot be"},
		{64, 6, -1, 1, "of -1 keys"},
		{64, 6, 0, 0, "made for 0, "},
		{64, 6, 0, -5, "made for -5, "},
		{64, 6, 0, 1<<40 + 1, "made for 1099511627777, "},
	} {
		if int64(int(c.capacity)) != c.capacity {
			continue // an int of 32 bits cannot be so large
		}
		t.Run(fmt.Sprint(c.length, c.probes, c.keys, c.capacity), func(t *testing.T) {
			set, err := blocked.FromLines(make([]byte, c.length), c.probes, c.keys, int(c.capacity))
			require.ErrorIs(t, err, frame.ErrCorrupt)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, set)
		})
	}
}
