package spec

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

func TestParseBits(t *testing.T) {
	for text, want := range map[string]Bits{
		"1": 1000, "10": 10_000, "9.6": 9600, "9.585": 9585, "9.05": 9050, "012.500": 12_500, "32": 32_000,
	} {
		got, err := parseBits(text, One, 32*One)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", ".", "1.", ".5", "0", "0.999", "32.001", "33", "9.5855", "-1", "+1", "1e1", "0x8", "1_0", " 1", "1 ", "1,5",
		"NaN", "Inf", "9999999", "99999999999999999999", "٣",
	} {
		_, err := parseBits(text, One, 32*One)
		require.ErrorContains(t, err, "from 1 to 32 with at most three decimals", text)
	}
}

func TestBitsRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		want := Bits(rapid.Uint32Range(0, 999_999).Draw(t, "bits"))
		got, err := parseBits(want.String(), 0, 999_999)
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

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"0.01": 0.01, "0.5": 0.5, "0.0010": 0.001, "0.000000001": 1e-9} {
		got, err := parseRate(text, 1e-9, 0.5)
		require.NoError(t, err, text)
		require.InDelta(t, want, got, 1e-15, text)
	}
	for _, text := range []string{"", "0", "0.", "1", ".01", "0.51", "0.0000000009", "-0.01", "0.1.1", "1e-3",
		"0.1e-1", "0x.1", "1%", "NaN", "0.0100000000000000001"} {
		_, err := parseRate(text, 1e-9, 0.5)
		require.EqualError(t, err, `rate must be a decimal fraction from 1e-09 to 0.5, such as 0.01, not "`+text+`"`)
	}
}

// A bound that an error names is itself accepted.
func TestBoundsInErrorsAreWithinBounds(t *testing.T) {
	for _, lo := range []float64{1e-9, 2.3283e-10, 1.0501e-5, 9.999e-7, 9.99e-7, 0.1, 0.123456} {
		got := roundedUp(lo)
		require.GreaterOrEqual(t, got, lo)
		require.LessOrEqual(t, got, lo*1.01)
	}
}

// A rate is the least bits whose rate is not above it, for curves of any steps.
func TestLeastBitsOfARate(t *testing.T) {
	halves := func(b Bits) float64 { return math.Exp2(-b.Float()) }
	for text, want := range map[string]Bits{
		"10": 10_000, "9.6": 9600, "rate=0.5": 1000, "rate=0.25": 2000, "rate=0.01": 6644, "rate=0.00390625": 8000,
		"rate=0.003906249": 8001,
	} {
		got, err := ParseBitsOrRate(text, One, 16*One, halves)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	property.Check(t, func(t *rapid.T) {
		curve := func(n int) float64 { return 1 / float64(1+n/3) } // three numbers share a rate
		asked := rapid.Float64Range(0.011, 0.5).Draw(t, "rate")
		text := strconv.FormatFloat(asked, 'f', 12, 64)
		n, err := ParseIntOrRate("steps", "rate="+text, 2, 300, curve)
		require.NoError(t, err)
		require.LessOrEqual(t, curve(n), asked+1e-12)
		if n > 2 {
			require.Greater(t, curve(n-1), asked-1e-12)
		}
	})
}

func TestBitsOrRateSaysWhatIsWrong(t *testing.T) {
	rate := func(b Bits) float64 { return math.Exp2(-b.Float()) }
	for text, want := range map[string]string{
		"rate=":        `rate must be a decimal fraction from 1.53e-05 to 0.5, such as 0.01, not ""`,
		"rate=0.6":     `rate must be a decimal fraction from 1.53e-05 to 0.5, such as 0.01, not "0.6"`,
		"rate=0.00001": `not "0.00001"`,
		"Rate=0.01":    `bits per key must be a number from 1 to 16 with at most three decimals, not "Rate=0.01"`,
		"17":           `bits per key must be a number from 1 to 16`,
	} {
		_, err := ParseBitsOrRate(text, One, 16*One, rate)
		require.ErrorContains(t, err, want, text)
	}
	_, err := ParseIntOrRate("steps", "7.5", 1, 9, func(int) float64 { return 0.1 })
	require.EqualError(t, err, `steps must be a whole number from 1 to 9, not "7.5"`)
}
