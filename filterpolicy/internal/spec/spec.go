// Package spec reads and writes the numbers of a filter spec such as "bloom:9.6" or "cuckoo:12,4".
package spec

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// ErrBadSpec is matched by every error about the text of a spec.
var ErrBadSpec = errors.New("filterpolicy: bad spec")

// Errorf returns an error that matches ErrBadSpec, quotes the spec, says what is
// wrong with it, and ends with a spec that is right.
func Errorf(spec, example, format string, args ...any) error {
	return fmt.Errorf("%w %q: %w; for example %q", ErrBadSpec, spec, fmt.Errorf(format, args...), example)
}

// Wrap makes what is wrong with a family's parameters an error as Errorf does; nil stays nil.
func Wrap(err error, family, args, example string) error {
	if err == nil {
		return nil
	}
	return Errorf(family+":"+args, example, "%w", err)
}

// Bits is a number of bits per key in thousandths. A fixed point keeps policies comparable and their text exact.
type Bits uint32

// One is one bit per key.
const One Bits = 1000

// parseBits reads a decimal number with at most three decimals, such as "10" or "9.6", and checks its bounds.
func parseBits(text string, lo, hi Bits) (Bits, error) {
	whole, frac, dotted := strings.Cut(text, ".")
	if digits(whole, 6) && (!dotted || digits(frac, 3)) {
		n, err := strconv.ParseUint(whole+(frac + "000")[:3], 10, 32)
		if b := Bits(n); err == nil && b >= lo && b <= hi {
			return b, nil
		}
	}
	return 0, fmt.Errorf("bits per key must be a number from %s to %s with at most three decimals, not %q", lo, hi,
		text)
}

// ParseInt reads a whole number and checks its bounds; what names it in errors.
func ParseInt(what, text string, lo, hi int) (int, error) {
	if digits(text, 9) {
		if n, err := strconv.Atoi(text); err == nil && n >= lo && n <= hi {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s must be a whole number from %d to %d, not %q", what, lo, hi, text)
}

func digits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// String formats b as parseBits reads it, without needless zeros.
func (b Bits) String() string {
	s := strconv.FormatUint(uint64(b/One), 10)
	if frac := b % One; frac != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%03d", frac), "0")
	}
	return s
}

// Float returns b in bits per key.
func (b Bits) Float() float64 { return float64(b) / float64(One) }

// Units returns how many units of unitBits bits hold n keys at b bits per key,
// rounded up, and at least one. A set too large for the address space gives false.
func (b Bits) Units(n int, unitBits uint64) (units uint64, ok bool) {
	const most = 1 << 44 // keys: well above memory, well below overflow
	if n < 0 || uint64(n) > most {
		return 0, false
	}
	unit := unitBits * uint64(One)
	units = max(1, (uint64(n)*uint64(b)+unit-1)/unit)
	size := units * (unitBits / 8)
	return units, size == uint64(int(size)) && int(size) >= 0
}

// maxRate is the highest false-positive rate that may be asked for. A filter that
// is wrong more often is hardly worth its probe.
const maxRate = 0.5

// ParseBitsOrRate is parseBits that takes a false-positive rate as well: after "rate=", a decimal fraction from the
// rate of hi bits to 0.5. A rate means the least bits with a rate that is not above it. The function rate tells the
// rate that theory predicts for large filters; it must not grow with the bits.
func ParseBitsOrRate(text string, lo, hi Bits, rate func(Bits) float64) (Bits, error) {
	if text, ok := strings.CutPrefix(text, "rate="); ok {
		n, err := leastFor(text, int(lo), int(hi), func(n int) float64 { return rate(Bits(n)) })
		return Bits(n), err
	}
	return parseBits(text, lo, hi)
}

// ParseIntOrRate is ParseInt for bits that takes a rate as ParseBitsOrRate does.
func ParseIntOrRate(what, text string, lo, hi int, rate func(int) float64) (int, error) {
	if text, ok := strings.CutPrefix(text, "rate="); ok {
		return leastFor(text, lo, hi, rate)
	}
	return ParseInt(what, text, lo, hi)
}

// leastFor returns the least number from lo to hi with a rate of at most the one in text.
func leastFor(text string, lo, hi int, rate func(int) float64) (int, error) {
	asked, err := parseRate(text, rate(hi), maxRate)
	if err != nil {
		return 0, err
	}
	const slack = 1e-12 // what rounding may add to a rate that is met exactly
	steps := sort.Search(hi-lo, func(i int) bool { return rate(lo+i) <= asked*(1+slack) })
	return lo + steps, nil
}

// parseRate reads a false-positive rate, a decimal fraction such as "0.01", and checks its bounds.
func parseRate(text string, lo, hi float64) (float64, error) {
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
