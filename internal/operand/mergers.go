package operand

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Int64Add adds signed integers of 8 bytes, little-endian. Sums wrap around.
type Int64Add struct{}

const int64AddName = "siftkv.int64add"

// Name returns the name that a store records.
func (Int64Add) Name() string { return int64AddName }

// Merge adds two numbers.
func (Int64Add) Merge(_, older, newer []byte) ([]byte, error) {
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

// AppendInt64 appends n, as Int64Add reads it, to dst.
func AppendInt64(dst []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(dst, uint64(n)) }

// Int64 is the inverse of AppendInt64. It refuses a value that has not 8 bytes.
func Int64(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("siftkv: a counter has 8 bytes, this value has %d", len(value))
	}
	return int64(binary.LittleEndian.Uint64(value)), nil
}

// Append puts each operand after the value, with a separator between the two.
type Append struct{ Separator string }

const appendName = "siftkv.append"

// Name includes the separator, quoted, unless there is none.
func (m Append) Name() string {
	if m.Separator == "" {
		return appendName
	}
	return appendName + ":" + strconv.Quote(m.Separator)
}

// Merge appends newer to older.
func (m Append) Merge(_, older, newer []byte) ([]byte, error) {
	return append(append(older, m.Separator...), newer...), nil
}

// Builtin returns the merger of this package that has a name; nil for others.
func Builtin(name string) Merger {
	switch name {
	case int64AddName:
		return Int64Add{}
	case appendName:
		return Append{}
	}
	quoted, ok := strings.CutPrefix(name, appendName+":")
	if !ok {
		return nil
	}
	separator, err := strconv.Unquote(quoted)
	if m := (Append{separator}); err == nil && m.Name() == name {
		return m
	}
	return nil
}
