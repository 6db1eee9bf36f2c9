package filterpolicy

import "fmt"

// A RangeDecoder is a RangePolicy of a family that this package does not have, such as one of an
// application's own. What is opened with it, by kv.Options.RangeFilter or
// sstable.ReaderOptions.RangeFilter, reads range filters of its name with it; without it, files that
// have them are read as if they had none.
type RangeDecoder interface {
	RangePolicy

	// DecodeRange returns a view of what a RangeBuilder of the policy has encoded, of any of its
	// parameters. It must be safe for any bytes. The caller does not change data while the filter
	// is in use.
	DecodeRange(data []byte) (RangeFilter, error)
}

// DecodeRangeWith is DecodeRange, but leaves a family that this package does not have to p if p is
// a RangeDecoder of that name. p may be nil.
func DecodeRangeWith(p RangePolicy, name string, data []byte) (RangeFilter, error) {
	if d, ok := p.(RangeDecoder); ok && d.Name() == name {
		if _, known := rangeFamilyOf(name); !known {
			filter, err := d.DecodeRange(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return filter, nil
		}
	}
	return DecodeRange(name, data)
}
