// Package bytesize reads and writes numbers of bytes as people do: 64MiB.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are tried in order: "B" ends every other unit, so it comes last.
var units = []struct {
	suffix string
	factor int64
}{
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"tib", 1 << 40},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"tb", 1e12},
	{"k", 1 << 10},
	{"m", 1 << 20},
	{"g", 1 << 30},
	{"t", 1 << 40},
	{"b", 1},
	{"", 1},
}

// Parse reads a number of bytes, plain or with a unit in any letter case. Units are binary (KiB, MiB, GiB, TiB, or
// their first letter alone) or decimal (kB, MB, GB, TB). The result is whole and not negative.
func Parse(text string) (int64, error) {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, u := range units {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		if n, ok := times(strings.TrimSpace(number), u.factor); ok {
			return n, nil
		}
		break
	}
	return 0, fmt.Errorf("%.100q is not a size: write bytes or a number with KiB, MiB or GiB, such as 64MiB", text)
}

// times multiplies. A number without a fraction is exact, however large.
func times(number string, factor int64) (n int64, ok bool) {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n * factor, n >= 0 && n <= math.MaxInt64/factor
	}
	f, err := strconv.ParseFloat(number, 64)
	f *= float64(factor)
	whole := err == nil && f >= 0 && f < math.MaxInt64 && f == math.Trunc(f) // NaN is none of it
	if !whole {
		return 0, false
	}
	return int64(f), true
}

// Format writes a number of bytes exactly, in the largest binary unit that it is a multiple of, and a
// negative one plainly, which Parse does not read.
func Format(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
