package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "4096": 4096, "64MiB": 64 * MiB, "64 mib": 64 * MiB, "1.5GiB": 3 * GiB / 2,
		"16kB": 16000, "2MB": 2e6, "8k": 8 * KiB, "100B": 100,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-1", "1.5", "12 parsecs", "NaN", "1e30GiB", "inf"} {
		_, err := ParseSize(text)
		require.ErrorContains(t, err, "is not a size", text)
	}
}

func TestStringIsReadBack(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0 B", 1023: "1023 B", KiB: "1 KiB", 64 * MiB: "64 MiB", 3 * GiB / 2: "1.5 GiB", 4096: "4 KiB",
	} {
		require.Equal(t, want, size.String())
		var back Size
		require.NoError(t, back.UnmarshalText([]byte(want)))
		require.Equal(t, size, back)
	}
}
