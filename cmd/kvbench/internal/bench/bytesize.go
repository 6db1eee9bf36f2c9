package bench

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/bytesize"
)

// A Size is a number of bytes. As a flag it accepts a plain number of bytes or
// a number with a binary (KiB, MiB, GiB, TiB) or decimal (kB, MB, GB, TB) unit, in any
// letter case.
type Size int64

// Binary units.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// ParseSize reads a size. The result is whole and not negative.
func ParseSize(text string) (Size, error) {
	n, err := bytesize.Parse(text)
	return Size(n), err
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
