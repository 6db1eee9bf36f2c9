package filterpolicy

// A RangeDecoder is a RangePolicy of a family that this package does not have, such as one of an application's own.
// What is opened with it, by kv.Options.RangeFilter or sstable.ReaderOptions.RangeFilter, reads range filters of its
// name with it; without it, files that have them are read as if they had none.
type RangeDecoder interface {
	RangePolicy

	// DecodeRange returns a view of what a RangeBuilder of the policy has encoded, of any of its
	// parameters. It must be safe for any bytes. The caller does not change data while the filter
	// is in use. A panic, or a runtime.Goexit, is as an error: the file is read without its range filter.
	DecodeRange(data []byte) (RangeFilter, error)
}

// DecodeRangeWith is DecodeRange, but leaves a family that this package does not have to p if p is
// a RangeDecoder of that name. p may be nil.
func DecodeRangeWith(p RangePolicy, name string, data []byte) (RangeFilter, error) {
	d, ok := p.(RangeDecoder)
	if _, known := rangeFamilyOf(name); !ok || known {
		return DecodeRange(name, data)
	}
	return ownFilter("RangeFilter", d, d.DecodeRange, name, data, DecodeRange)
}
