package filterpolicy

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

var (
	// ErrUnknownFamily is matched by the error of Decode for a family that this
	// program does not have. The file is sound, and is read without its filter.
	ErrUnknownFamily = errors.New("filterpolicy: unknown family")

	// ErrCorrupt is matched by the error of Decode for bytes that are not a filter
	// of their family: cut short, damaged, or of a later version.
	ErrCorrupt = frame.ErrCorrupt
)

// Decode checks every byte of an encoded filter and returns a view of it. It copies
// nothing: the caller must not change data while the filter is in use. Any bytes
// are safe, at any alignment. An error matches ErrUnknownFamily or ErrCorrupt.
func Decode(name string, data []byte) (Filter, error) {
	f, ok := familyOf(name)
	if !ok {
		return nil, fmt.Errorf("%w %q; this program has %s", ErrUnknownFamily, name, usages())
	}
	filter, err := f.decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return filter, nil
}

// DecodeWith is Decode, but leaves a family that this package does not have to p if p is
// a Decoder of that name. p may be nil.
func DecodeWith(p Policy, name string, data []byte) (Filter, error) {
	if d, ok := p.(Decoder); ok && d.Name() == name {
		if _, known := familyOf(name); !known {
			filter, err := d.Decode(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return filter, nil
		}
	}
	return Decode(name, data)
}

// Probe returns a family's function for a single probe of encoded bytes, and false
// if there is no such family. It is for engines that hand over the bytes anew with
// each lookup and whose own checksum covers them: the function checks the bytes'
// description but not their checksum. It is safe for any bytes, answers true for
// those that are no filter, and does not allocate.
func Probe(name string) (probe func(data []byte, h uint64) bool, ok bool) {
	f, ok := familyOf(name)
	return f.probe, ok
}

// Families returns the names on disk of all families, "none" first.
func Families() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.name
	}
	return names
}
