package spec

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// maxRate is the highest false-positive rate that may be asked for. A filter that
// is wrong more often is hardly worth its probe.
const maxRate = 0.5

// ParseBitsOrRate is ParseBits that takes a false-positive rate as well: after
// "rate=", a decimal fraction from the rate of hi bits to 0.5. A rate means the
// least bits whose rate is not above it. The function rate tells the rate that
// theory predicts for large filters; it must not grow with the bits.
func ParseBitsOrRate(text string, lo, hi Bits, rate func(Bits) float64) (Bits, error) {
	if text, ok := strings.CutPrefix(text, "rate="); ok {
		n, err := leastFor(text, int(lo), int(hi), func(n int) float64 { return rate(Bits(n)) })
		return Bits(n), err
	}
	return ParseBits(text, lo, hi)
}

// ParseIntOrRate is ParseInt for bits that takes a rate as ParseBitsOrRate does.
func ParseIntOrRate(what, text string, lo, hi int, rate func(int) float64) (int, error) {
	if text, ok := strings.CutPrefix(text, "rate="); ok {
		return leastFor(text, lo, hi, rate)
	}
	return ParseInt(what, text, lo, hi)
}

// leastFor returns the least number from lo to hi whose rate is at most the one
// in text.
func leastFor(text string, lo, hi int, rate func(int) float64) (int, error) {
	asked, err := ParseRate(text, rate(hi), maxRate)
	if err != nil {
		return 0, err
	}
	const slack = 1e-12 // what rounding may add to a rate that is met exactly
	steps := sort.Search(hi-lo, func(i int) bool { return rate(lo+i) <= asked*(1+slack) })
	return lo + steps, nil
}

// ParseRate reads a false-positive rate, a decimal fraction such as "0.01", and
// checks its bounds.
func ParseRate(text string, lo, hi float64) (float64, error) {
	const most = 18 // decimals
	if frac, ok := strings.CutPrefix(text, "0."); ok && digits(frac, most) {
		if rate, err := strconv.ParseFloat(text, 64); err == nil && rate >= lo && rate <= hi {
			return rate, nil
		}
	}
	return 0, fmt.Errorf("rate must be a decimal fraction from %.3g to %.3g, such as 0.01, not %q", roundedUp(lo), hi,
		text)
}

// roundedUp returns the least number of three significant digits that is not below
// x, so that a bound in an error's text is itself within bounds.
func roundedUp(x float64) float64 {
	rounded := func(x float64) float64 {
		y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
		return y
	}
	y := rounded(x)
	if y < x {
		y = rounded(y + math.Pow10(int(math.Floor(math.Log10(y)))-2))
	}
	return y
}
