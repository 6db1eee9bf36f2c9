package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryChartHasAHeadline(t *testing.T) {
	t.Parallel()
	set, labels := samples()
	for _, c := range All(set, labels) {
		require.Regexp(t, `^siftkv .*[^.]\.$`, c.Headline, c.ID)
		require.NotContains(t, c.Headline, "oracle", c.ID)
	}
}

func TestHowOftenSomethingHappens(t *testing.T) {
	t.Parallel()
	for perLookup, want := range map[float64]string{
		0: "no block in any absent lookup", 0.01: "1 block in 100 absent lookups",
		0.0007: "1 block in 1429 absent lookups", 1.001: "1 block per absent lookup",
		2.25: "2.25 blocks per absent lookup",
	} {
		require.Equal(t, want, often(perLookup, "block", "absent lookup"))
	}
	for ns, want := range map[float64]string{320: "320 ns", 3210: "3.21 µs", 1.5: "1.5 ns"} {
		require.Equal(t, want, nanoseconds(ns))
	}
}
