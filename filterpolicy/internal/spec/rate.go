package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseRate reads a false-positive rate, a decimal fraction such as "0.01", and
// checks its bounds.
func ParseRate(text string, lo, hi float64) (float64, error) {
	const most = 18 // decimals
	if frac, ok := strings.CutPrefix(text, "0."); ok && digits(frac, most) {
		if rate, err := strconv.ParseFloat(text, 64); err == nil && rate >= lo && rate <= hi {
			return rate, nil
		}
	}
	return 0, fmt.Errorf("rate must be a decimal fraction from %.3g to %.3g, such as 0.01, not %q", lo, hi, text)
}
