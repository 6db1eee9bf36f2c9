package spec

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseBits(t *testing.T) {
	for text, want := range map[string]Bits{
		"1": 1000, "10": 10_000, "9.6": 9600, "9.585": 9585, "9.05": 9050, "012.500": 12_500, "32": 32_000,
	} {
		got, err := ParseBits(text, One, 32*One)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", ".", "1.", ".5", "0", "0.999", "32.001", "33", "9.5855", "-1", "+1", "1e1", "0x8", "1_0", " 1", "1 ", "1,5",
		"NaN", "Inf", "9999999", "99999999999999999999", "٣",
	} {
		_, err := ParseBits(text, One, 32*One)
		require.ErrorContains(t, err, "from 1 to 32 with at most three decimals", text)
	}
}

func TestBitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Bits(rapid.Uint32Range(0, 999_999).Draw(t, "bits"))
		got, err := ParseBits(want.String(), 0, 999_999)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestParseInt(t *testing.T) {
	n, err := ParseInt("slots", "07", 4, 32)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	for _, text := range []string{"", "3", "33", "-5", "5.0", "five", "9999999999"} {
		_, err := ParseInt("slots", text, 4, 32)
		require.EqualError(t, err, `slots must be a whole number from 4 to 32, not "`+text+`"`)
	}
}

func TestUnitsRoundUp(t *testing.T) {
	for _, c := range []struct {
		bits Bits
		n    int
		unit uint64
		want uint64
	}{
		{10_000, 1, 8, 2}, {10_000, 4, 8, 5}, {9600, 5, 8, 6}, {9601, 5, 8, 7}, {1, 1, 512, 1},
		{10_000, 1_000_000, 512, 19_532},
	} {
		got, ok := c.bits.Units(c.n, c.unit)
		require.True(t, ok)
		require.Equal(t, c.want, got)
	}
	for _, n := range []int{-1, math.MaxInt} {
		_, ok := (64 * One).Units(n, 8)
		require.False(t, ok)
	}
}

func TestErrorfQuotesAndHelps(t *testing.T) {
	err := Errorf("x:1", "x:2", "%d is odd", 1)
	require.ErrorIs(t, err, ErrBadSpec)
	require.EqualError(t, err, `filterpolicy: bad spec "x:1": 1 is odd; for example "x:2"`)
}

func TestWrapIsErrorfForParameters(t *testing.T) {
	require.NoError(t, Wrap(nil, "x", "1", "x:2"))
	cause := errors.New("1 is odd")
	err := Wrap(cause, "x", "1", "x:2")
	require.ErrorIs(t, err, cause)
	require.Equal(t, Errorf("x:1", "x:2", "1 is odd").Error(), err.Error())
}
