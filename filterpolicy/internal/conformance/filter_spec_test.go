package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Means checks that specs mean the same policy as another text, its canonical one,
// which reads back.
func Means(t *testing.T, canonical map[string]string) {
	t.Helper()
	for spec, want := range canonical {
		p := Policy(t, spec)
		require.Equal(t, want, p.String(), spec)
		require.True(t, p == Policy(t, want), "%s and %s are not equal", spec, want)
	}
}

// Refuses checks that a family's own Parse refuses arguments with a bad spec's error,
// which says what is wanted and shows a spec that is right.
func Refuses[P comparable](t *testing.T, parse func(args string) (P, error), wants map[string]string) {
	t.Helper()
	for args, want := range wants {
		p, err := parse(args)
		require.Zero(t, p, args)
		require.ErrorIs(t, err, filterpolicy.ErrBadSpec, args)
		require.ErrorContains(t, err, strconv.Quote(args)[1:], "the text must be quoted")
		require.ErrorContains(t, err, want, args)
		_, example, ok := strings.Cut(err.Error(), "; for example ")
		require.True(t, ok, "%v", err)
		example, err = strconv.Unquote(example)
		require.NoError(t, err)
		Policy(t, example)
	}
}

// KeepsRates checks specs with a rate, each of them before with and after: theory
// is not above the rate for any number of keys.
func KeepsRates(t *testing.T, before, after string, rates ...float64) {
	t.Helper()
	for _, rate := range rates {
		p := Policy(t, before+"rate="+strconv.FormatFloat(rate, 'f', -1, 64)+after)
		require.LessOrEqual(t, worstRate(p), rate*(1+1e-9), "%s for a rate of %g", p, rate)
	}
}

// LeastBitsKeepRates is KeepsRates, and checks that with fewer bits the rate would be
// above.
func LeastBitsKeepRates(t *testing.T, before, after string, rates ...float64) {
	t.Helper()
	KeepsRates(t, before, after, rates...)
	for _, rate := range rates {
		p := Policy(t, before+"rate="+strconv.FormatFloat(rate, 'f', -1, 64)+after)
		if fewer, ok := fewerBits(p); ok {
			require.Greater(t, worstRate(fewer), rate, "%s would do for a rate of %g", fewer, rate)
		}
	}
}

// RatesFall checks that theory's rate never grows with the bits per key, of which a
// family takes fractions up to most. The least bits of a rate are then well defined.
func RatesFall(t *testing.T, family string, most int) {
	t.Helper()
	const large = 1 << 30 // keys
	last := 1.0
	for thousandths := 1000; thousandths <= 1000*most; thousandths += 7 {
		spec := fmt.Sprintf("%s:%d.%03d", family, thousandths/1000, thousandths%1000)
		fpr := filterpolicy.Expected(Policy(t, spec), large).FPR
		require.Less(t, fpr, last, spec)
		last = fpr
	}
}

// worstRate returns the highest rate that theory knows for filters of many sizes.
func worstRate(p filterpolicy.Policy) (worst float64) {
	const large = 1 << 30 // keys
	for n := 1; n < large; n += 1 + n/200*100 {
		worst = max(worst, filterpolicy.Expected(p, n).FPR)
	}
	return max(worst, filterpolicy.Expected(p, large).FPR)
}

// fewerBits returns a policy with a step fewer bits, false if there is none.
func fewerBits(p filterpolicy.Policy) (fewer filterpolicy.Policy, ok bool) {
	name, args, _ := strings.Cut(p.String(), ":")
	text, rest, given := strings.Cut(args, ",")
	if given {
		rest = "," + rest
	}
	bits, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	for _, step := range []float64{0.001, 1} {
		text := strconv.FormatFloat(bits-step, 'f', 3, 64)
		if step == 1 {
			text = strconv.FormatFloat(bits-step, 'f', 0, 64)
		}
		if fewer, err := filterpolicy.Parse(name + ":" + text + rest); err == nil {
			return fewer, true
		}
	}
	return nil, false
}
