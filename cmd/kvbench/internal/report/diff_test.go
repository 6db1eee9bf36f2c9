package report

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

func TestNumbersOfOneRepetitionThatDifferAreShown(t *testing.T) {
	t.Parallel()
	set := func(size float64) []*tidy.Measured {
		r := tidy.New("filters", "about", nil, environ.Environment{})
		r.Add(tidy.Of("filter", "bloom:10"), "size", "bits/key", size)
		r.Add(tidy.Of("filter", "bloom:10"), "theory-size", "bits/key", 10)
		return r.Measured()
	}
	text := func(size float64) string {
		d, err := results.Compare(set(10), set(size), nil)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, Diff(&out, d, false))
		return out.String()
	}
	require.Contains(t, text(10), "Nothing differs.")
	require.Contains(t, text(12), "+20.00 %")
	require.NotContains(t, text(12), "theory-size")

	d, err := results.Compare(set(10), set(12), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, Tidy(&out, d.Rows()))
	require.Regexp(t, `size +unclear +second +12  bits/key`, out.String(), "and from rows")
}
