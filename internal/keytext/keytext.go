// Package keytext writes keys and values as text that is safe on a terminal and in
// JSON, and reads it back. Names of files and ids have a form in JSON here, too.
package keytext

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Format is a way to write bytes as text.
type Format string

// The formats.
const (
	Text   Format = "text"   // as it is where it can be printed, Go-quoted where not
	Hex    Format = "hex"    // two digits a byte
	Base64 Format = "base64" // standard, padded
)

// Parse reads bytes that a person wrote. In Text, what begins with a double quote is
// a Go string, which is UTF-8, and everything else stands for itself, byte for byte.
func (f Format) Parse(s string) ([]byte, error) {
	switch f {
	case Hex:
		b, err := hex.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not hexadecimal: %w", s, err)
		}
		return b, nil
	case Base64:
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not base64: %w", s, err)
		}
		return b, nil
	}
	if !strings.HasPrefix(s, `"`) {
		return []byte(s), nil
	}
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%q begins with a double quote and is not UTF-8: write other bytes as \\xff", s)
	}
	u, err := strconv.Unquote(s)
	if err != nil {
		return nil, fmt.Errorf("%s begins with a double quote and is not a Go string: %w", s, err)
	}
	return []byte(u), nil
}

// Append appends b as one word of text without control characters, which Parse reads back.
func (f Format) Append(dst, b []byte) []byte {
	switch f {
	case Hex:
		return hex.AppendEncode(dst, b)
	case Base64:
		return base64.StdEncoding.AppendEncode(dst, b)
	}
	if plain(b) {
		return append(dst, b...)
	}
	return strconv.AppendQuote(dst, string(b))
}

// String is Append to a string.
func (f Format) String(b []byte) string { return string(f.Append(nil, b)) }

// plain reports whether b can be printed as it is and is not taken for a quoted string.
func plain(b []byte) bool {
	if len(b) == 0 || !utf8.Valid(b) || b[0] == ' ' || b[len(b)-1] == ' ' {
		return false
	}
	return !bytes.ContainsFunc(b, func(r rune) bool { return !strconv.IsPrint(r) || r == '"' || r == '\\' })
}

// Line returns text of a file as it is printed on a line: as it is if all of it can be printed, quotation marks and
// backslashes too, and else quoted as in Go. What a file says must not speak to the terminal.
func Line(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

// Escaped returns a message as it is printed on a line: what cannot be printed is written as in a Go string, and all
// else is as it is. A message may have names of files in it.
func Escaped(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1, !strconv.IsPrint(r):
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// JSON makes b a value of encoding/json: in Text a string if b is valid UTF-8 and else an object {"base64": "..."}, so
// that no byte is lost; in the other formats a string.
func (f Format) JSON(b []byte) any {
	switch {
	case f == Hex || f == Base64:
		return f.String(b)
	case utf8.Valid(b):
		return string(b)
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString(b)}
}

// Bytes are a key in a report: JSON as Text.JSON has it, null if nil.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(Text.JSON(b))
}

// String is Text.String.
func (b Bytes) String() string { return Text.String(b) }

// A Name is that of a file or a directory in a report: JSON as Text.JSON has it.
type Name string

// String returns the name as Line has it.
func (n Name) String() string { return Line(string(n)) }

// MarshalJSON implements json.Marshaler.
func (n Name) MarshalJSON() ([]byte, error) { return json.Marshal(Text.JSON([]byte(n))) }

// An ID tells a store, a file or a hash from all others, and is no number to count with: JSON as 16 hexadecimal digits.
// As a number, readers that compute in floating point would round it.
type ID uint64

// MarshalJSON implements json.Marshaler.
func (id ID) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%016x"`, uint64(id)), nil }
