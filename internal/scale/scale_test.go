package scale

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	for _, c := range []struct{ n, nLong, times, slowdown, want int }{
		{40, 240, 0, 1, 40},
		{40, 240, 0, 4, 40},
		{3, 240, 0, 4, 3},
		{6, 12, 0, 4, 3},
		{40, 240, 1, 1, 240},
		{40, 240, 1, 4, 60},
		{40, 240, 42, 1, 10_080},
	} {
		require.Equal(t, c.want, count(c.n, c.nLong, c.times, c.slowdown), "%+v", c)
	}
}

func TestStride(t *testing.T) {
	for _, c := range []struct{ n, nLong, times, slowdown, want int }{
		{150, 47, 0, 1, 150},
		{150, 47, 0, 4, 600},
		{150, 47, 1, 1, 47},
		{150, 47, 1, 4, 188},
		{150, 47, 10, 1, 4},
		{150, 47, 47, 1, 1},
		{150, 47, 1000, 4, 1},
		{5, 1, 1, 1, 1},
		{5, 1, 1, 4, 4},
	} {
		require.Equal(t, c.want, stride(c.n, c.nLong, c.times, c.slowdown), "%+v", c)
	}
}

func TestAWrongValueOfLongIsRefused(t *testing.T) {
	require.Equal(t, 0, parse(""))
	require.Equal(t, 0, parse("0"))
	require.Equal(t, 1, parse("1"))
	require.Equal(t, 40, parse("40"))
	for _, text := range []string{"-1", "yes", "1.5", " 1"} {
		require.Panics(t, func() { parse(text) }, text)
	}
}

func TestFewerRoundsWhereOnlyGoroutinesAreTested(t *testing.T) {
	defer func(was bool) { meetings = was }(meetings)
	meetings = false
	require.Equal(t, 40, Fewer(40, 10))
	meetings = true
	require.Equal(t, 10, Fewer(40, 10))
}
