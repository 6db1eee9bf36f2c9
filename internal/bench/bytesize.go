package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Size is a number of bytes. As a flag it accepts a plain number of bytes or
// a number with a binary (KiB, MiB, GiB) or decimal (kB, MB, GB) unit, in any
// letter case.
type Size int64

// Binary units.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// units are tried in order: "B" ends every other unit, so it comes last.
var units = []struct {
	suffix string
	factor float64
}{
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"k", 1 << 10},
	{"m", 1 << 20},
	{"g", 1 << 30},
	{"b", 1},
	{"", 1},
}

// ParseSize reads a size. The result is whole and not negative.
func ParseSize(text string) (Size, error) {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, u := range units {
		number, ok := strings.CutSuffix(lower, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		f *= u.factor
		if err != nil || math.IsNaN(f) || f < 0 || f >= math.MaxInt64 || f != math.Trunc(f) {
			break
		}
		return Size(f), nil
	}
	return 0, fmt.Errorf("%q is not a size: write bytes or a number with KiB, MiB or GiB, such as 64MiB", text)
}

// UnmarshalText makes Size a flag value.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err == nil {
		*s = v
	}
	return err
}

// String prints the size in the largest binary unit that keeps it at least 1,
// with one decimal unless it is whole.
func (s Size) String() string {
	for _, u := range []struct {
		unit Size
		name string
	}{{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		switch {
		case s < u.unit:
		case s%u.unit == 0:
			return fmt.Sprintf("%d %s", s/u.unit, u.name)
		default:
			return fmt.Sprintf("%.1f %s", float64(s)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(s))
}
