package rangedel

import "errors"

// On disk a range tombstone is an internal key (its start, sequence number and
// KindRangeDelete) with a value that holds its end:
//
//	0x00           no bound
//	0x01 | key     the end, which the tombstone does not cover

const (
	endUnbounded = 0x00
	endKey       = 0x01
)

var errBadEnd = errors.New("a range tombstone's end is malformed")

// AppendEnd appends the encoding of a tombstone's end; nil has no bound.
func AppendEnd(dst, end []byte) []byte {
	if end == nil {
		return append(dst, endUnbounded)
	}
	return append(append(dst, endKey), end...)
}

// DecodeEnd returns the end encoded in value: nil without a bound, else a non-nil slice of value.
func DecodeEnd(value []byte) ([]byte, error) {
	switch {
	case len(value) == 1 && value[0] == endUnbounded:
		return nil, nil
	case len(value) >= 1 && value[0] == endKey:
		return value[1:len(value):len(value)], nil
	}
	return nil, errBadEnd
}
