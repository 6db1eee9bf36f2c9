package compaction

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

// Ranges cover all keys, in order and without gaps, and each has about as much as the others.
func TestRangesAreEven(t *testing.T) {
	t.Parallel()
	for n := 1; n < 20; n++ {
		rng := rand.New(rand.NewPCG(28, uint64(n)))
		var parts []Part
		total := int64(0)
		for range 50 * n {
			p := Part{End: fmt.Appendf(nil, "%04d", rng.IntN(10_000)), Size: 1 + rng.Int64N(100)}
			parts, total = append(parts, p), total+p.Size
		}
		ranges := EvenRanges(parts, n)
		require.Len(t, ranges, n)
		require.Nil(t, ranges[0].Lo)
		require.Nil(t, ranges[n-1].Hi)
		for i, r := range ranges {
			if i > 0 {
				require.Equal(t, ranges[i-1].Hi, r.Lo)
			}
			size := int64(0)
			for _, p := range parts {
				if (r.Lo == nil || string(p.End) > string(r.Lo)) && (r.Hi == nil || string(p.End) <= string(r.Hi)) {
					size += p.Size
				}
			}
			require.InDelta(t, total/int64(n), size, 300, "range %d of %d", i, n)
		}
	}
	one := []Part{{[]byte("k"), 1}, {[]byte("k"), 2}, {[]byte("k"), 3}}
	require.Equal(t, []version.Span{{Hi: []byte("k")}, {Lo: []byte("k")}}, EvenRanges(one, 3))
	require.Equal(t, make([]version.Span, 1), EvenRanges(nil, 3))
}

func TestNumRanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		kind      Kind
		output    int
		size      int64
		threads   int
		rangeSize int64
		want      int
	}{
		{"small", Merge, lastLevel, 100 * mib, 2, 0, 1},
		{"two files for a range", Merge, lastLevel, 2 * 2 * 64 * mib, 2, 0, 2},
		{"ranges for each thread", Merge, lastLevel, 2 * gib, 2, 0, 8},
		{"large", Merge, lastLevel, 100 * gib, 2, 0, 200},
		{"one thread", Merge, lastLevel, 100 * gib, 1, 0, 1},
		{"level 0", Merge, 0, 100 * gib, 2, 0, 1},
		{"small blob files", JoinBlobs, lastLevel, 100 * gib, 2, 0, 1},
		{"a size of ranges", Merge, lastLevel, 100, 1, 10, 10},
		{"a size that is larger", Merge, lastLevel, 100, 1, 1000, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := input(versionOf(t, table(5, "a", "z", c.size)))
			in.RangeSize, in.Style = c.rangeSize, Tiered
			j := &Job{Kind: c.kind, Level: 5, Output: c.output, Version: in.Version}
			j.Inputs[5] = in.Version.Levels[5].Tables()
			require.Equal(t, c.want, in.NumRanges(j, c.threads))
		})
	}
}

// A table ends at the gaps between inputs, and where it overlaps too much below.
func TestCuts(t *testing.T) {
	t.Parallel()
	tables := []manifest.AddedTable{table(4, "a", "z", mib)}
	for c := 'a'; c <= 'z'; c++ {
		tables = append(tables, table(lastLevel, string(c), string(c)+"z", 100*mib))
	}
	in := input(versionOf(t, tables...))
	j := &Job{Kind: Merge, Level: 4, Output: 5, Gaps: [][]byte{[]byte("c"), []byte("d"), []byte("y")}}
	j.Inputs[4] = in.Version.Levels[4].Tables()
	in.Prepare(j)
	c := in.CutsOf(j, version.Span{})
	c.maxSum = 250 * mib
	require.Nil(t, c.Gap([]byte("b"), false))
	require.Nil(t, c.Gap(nil, false), "the empty key is before all gaps")
	require.False(t, c.TooMuch([]byte("c")))
	require.False(t, c.TooMuch([]byte("cx")))
	require.True(t, c.TooMuch([]byte("d")))
	require.EqualValues(t, "c", c.Gap([]byte("dx"), false))
	require.EqualValues(t, "d", c.Gap([]byte("dx"), false))
	require.Nil(t, c.Gap([]byte("dx"), false))
	require.False(t, c.TooMuch([]byte("dx")), "a gap has begun a table")
	require.True(t, c.TooMuch([]byte("g")))
	c.Begin()
	require.False(t, c.TooMuch([]byte("h")))
	require.EqualValues(t, "y", c.Gap(nil, true))
	require.Nil(t, c.Gap(nil, true))

	within := in.CutsOf(j, version.Span{Lo: []byte("x"), Hi: []byte("y")})
	require.Len(t, within.below, 1)
}
