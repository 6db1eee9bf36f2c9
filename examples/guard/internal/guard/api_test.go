package guard

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"ann", "a1", "0x", "a.b_c-d", strings.Repeat("a", 32)} {
		require.NoError(t, checkName(name))
	}
	for _, name := range []string{
		"", "a", strings.Repeat("a", 33), "Ann", "-a", ".a", "_a", "a b", "a/b", "a\n", "\x00a", "a{b}", "änn",
		"a\xff", "ann:1",
	} {
		err := checkName(name)
		var input *inputError
		require.ErrorAs(t, err, &input, "%q", name)
		require.Less(t, len(err.Error()), 300, "an error quotes no more than the beginning")
	}
}

func TestParseID(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		id := rapid.Int64Range(1, math.MaxInt64).Draw(t, "id")
		got, err := parseID(strconv.FormatInt(id, 10))
		require.NoError(t, err)
		require.Equal(t, id, got)
	})
	for _, id := range []string{
		"", "0", "-1", "+1", "01", "1.0", "1e3", "0x1", " 1", "9223372036854775808", "ten", strings.Repeat("9", 10_000),
	} {
		_, err := parseID(id)
		var input *inputError
		require.ErrorAs(t, err, &input, "%.20q", id)
		require.Less(t, len(err.Error()), 300)
	}
}

// One key has one spelling: what is accepted is written as it was read.
func FuzzParseID(f *testing.F) {
	f.Add("7")
	f.Add("007")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := parseID(s); err == nil {
			require.Positive(t, id)
			require.Equal(t, s, strconv.FormatInt(id, 10))
		}
	})
}
