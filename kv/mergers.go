package kv

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Int64Add adds up counters: values and operands are signed integers of 8 bytes,
// little-endian (AppendInt64, Int64). Sums wrap around, as Go's do: an addition that
// stopped at the largest number would not be associative.
var Int64Add Merger = int64Add{}

type int64Add struct{}

const int64AddName = "siftkv.int64add"

func (int64Add) Name() string { return int64AddName }

func (int64Add) Merge(_, older, newer []byte) ([]byte, error) {
	a, err := Int64(older)
	if err != nil {
		return nil, err
	}
	b, err := Int64(newer)
	if err != nil {
		return nil, err
	}
	return AppendInt64(older[:0], a+b), nil
}

// AppendInt64 appends n, as Int64Add wants it, to dst.
func AppendInt64(dst []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

// Int64 is the inverse of AppendInt64. It refuses a value that has not 8 bytes.
func Int64(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("siftkv: a counter has 8 bytes, this value has %d", len(value))
	}
	return int64(binary.LittleEndian.Uint64(value)), nil
}

// Append returns a merger that puts each operand behind the value, with a separator
// between the two; it may be empty. It is made for lists that stay small: a lookup
// returns all of the list, and a value that would outgrow MaxValueSize cannot be
// read any more.
func Append(separator string) Merger { return appendMerger{separator} }

type appendMerger struct{ separator string }

const appendName = "siftkv.append"

// Name includes the separator, quoted, unless there is none.
func (m appendMerger) Name() string {
	if m.separator == "" {
		return appendName
	}
	return appendName + ":" + strconv.Quote(m.separator)
}

func (m appendMerger) Merge(_, older, newer []byte) ([]byte, error) {
	return append(append(older, m.separator...), newer...), nil
}

// builtinMerger returns the merger of this package that has a name; nil for others.
func builtinMerger(name string) Merger {
	switch name {
	case int64AddName:
		return Int64Add
	case appendName:
		return Append("")
	}
	quoted, ok := strings.CutPrefix(name, appendName+":")
	if !ok {
		return nil
	}
	separator, err := strconv.Unquote(quoted)
	if m := Append(separator); err == nil && m.Name() == name {
		return m
	}
	return nil
}
