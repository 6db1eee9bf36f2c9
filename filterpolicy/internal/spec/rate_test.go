package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"0.01": 0.01, "0.5": 0.5, "0.0010": 0.001, "0.000000001": 1e-9} {
		got, err := ParseRate(text, 1e-9, 0.5)
		require.NoError(t, err, text)
		require.InDelta(t, want, got, 1e-15, text)
	}
	for _, text := range []string{"", "0", "0.", "1", ".01", "0.51", "0.0000000009", "-0.01", "0.1.1", "1e-3", "0.1e-1", "0x.1", "1%", "NaN", "0.0100000000000000001"} {
		_, err := ParseRate(text, 1e-9, 0.5)
		require.EqualError(t, err, `rate must be a decimal fraction from 1e-09 to 0.5, such as 0.01, not "`+text+`"`)
	}
}
