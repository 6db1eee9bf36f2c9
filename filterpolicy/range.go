package filterpolicy

import (
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/filterpolicy/internal/spec"
	"github.com/siftkv/siftkv/filterpolicy/none"
)

// A RangePolicy is a family of filters that answer for ranges of keys, with its parameters. Policies
// are equal (==) when their specs mean the same, and may be shared among goroutines.
type RangePolicy interface {
	// Name returns the family's name on disk, which never changes. It does not tell
	// the parameters; the encoded filter does.
	Name() string

	// String returns the spec: ParseRange(p.String()) gives p back.
	String() string

	// NewRangeBuilder returns an empty builder.
	NewRangeBuilder() RangeBuilder
}

// A RangeBuilder makes the range filters of one file after another. It is for one goroutine at a time.
type RangeBuilder interface {
	// AddKey adds a key, which must not be below the one before it in the order of bytes.
	// A key equal to the one before it is free. The caller may change key afterwards.
	AddKey(key []byte)

	// Finish appends the encoded filter of the keys added since the last Finish to dst and returns the result; the
	// builder is then empty and ready for the next file. The filter of no keys says false to every range.
	//
	// ok is false if there will be no filter for this file; data is then dst. That is so always with the policy "none",
	// for keys that were not in order, and if the filter would be disproportionately large.
	Finish(dst []byte) (data []byte, ok bool)
}

// A RangeFilter is a read-only view of an encoded range filter. Any number of goroutines may use it.
type RangeFilter interface {
	// MayContainRange reports whether a key k with lo <= k < hi may have been added; false is certain, for any byte
	// strings. A nil lo is before the first key, a nil hi after the last; an empty slice is the empty key. With lo >=
	// hi there is no such key, and the answer is false. It allocates nothing.
	MayContainRange(lo, hi []byte) bool
}

// ParseRange makes a range policy from its spec, a family's name and, after a colon, its parameters:
//
//	none       no filter
//	cut:BITS   keys cut to where they differ and BITS bits more, 0 to 16
//
// In place of BITS, "rate=0.01" means the least bits that pass, by ExpectedRange, at most that share of narrow empty
// ranges. The policy's String gives the bits.
//
// An error matches ErrBadSpec, says what is wrong and what the bounds are, and shows a spec that is right.
func ParseRange(s string) (RangePolicy, error) {
	name, args, given := strings.Cut(s, ":")
	f, ok := rangeFamilyOf(name)
	if !ok {
		return nil, spec.Errorf(s, "cut:6", "unknown family; the families are %s", rangeUsages())
	}
	if args == "" && (given || f.usage != f.name) {
		return nil, spec.Errorf(s, f.example, "its form is %s", f.usage)
	}
	return f.parse(args)
}

// NoRanges returns the range policy "none": no range filters.
func NoRanges() RangePolicy { return must(rangePolicyOf(none.Parse(""))) }

// DecodeRange checks every byte of an encoded range filter and returns a view of it. It copies
// nothing: the caller must not change data while the filter is in use. Any bytes
// are safe, at any alignment. An error matches ErrUnknownFamily or ErrCorrupt.
func DecodeRange(name string, data []byte) (RangeFilter, error) {
	f, ok := rangeFamilyOf(name)
	if !ok {
		return nil, fmt.Errorf("%w %q; this program has %s", ErrUnknownFamily, name, rangeUsages())
	}
	filter, err := f.decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return filter, nil
}

// RangeFamilies returns the names of all families of range filters.
func RangeFamilies() []string {
	return each(rangeFamilies, func(f rangeFamily) string { return f.name })
}

// ExpectedRange returns what theory says about p's filter of the given number of distinct random
// keys: its size with everything that is written, and the probability of "maybe". The latter is for
// an empty range in a random place that is narrow compared with the mean distance of two keys.
//
// Keys that crowd, as names do, take more bits, and ranges among them pass more often; so do wide
// ranges, and those that begin just after a key.
func ExpectedRange(p RangePolicy, keys int) Expectation { return expected(p, keys) }
