package bytesize

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "64MiB": 64 << 20, "64 mib": 64 << 20, "1.5GiB": 3 << 29, "2TiB": 2 << 40, "1t": 1 << 40,
		"16kB": 16000, "2MB": 2e6, "3TB": 3e12, "8k": 8 << 10, "100B": 100, "9007199254740993": 9007199254740993,
		"9223372036854775807": math.MaxInt64,
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-1", "-1KiB", "1.5", "12 parsecs", "NaN", "1e30GiB", "inf",
		"9223372036854775808", "9007199254740992KiB"} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "is not a size", text)
	}
}

func TestFormatIsReadBack(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1KiB", 1025: "1025", 3 << 29: "1536MiB", 1 << 40: "1TiB",
		math.MaxInt64: "9223372036854775807", 9007199254740993: "9007199254740993",
	} {
		require.Equal(t, want, Format(n))
		back, err := Parse(want)
		require.NoError(t, err)
		require.Equal(t, n, back)
	}
	require.Equal(t, "-1024", Format(-1024))
}
