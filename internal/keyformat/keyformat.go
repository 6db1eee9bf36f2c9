// Package keyformat writes keys and values in the formats that a user chooses, and reads them back. It is for
// programs: the store has no use for it.
package keyformat

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/siftkv/siftkv/internal/keytext"
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

// JSON makes b a value of encoding/json: in Text that of keytext.JSON, in the other formats a string.
func (f Format) JSON(b []byte) any {
	if f == Hex || f == Base64 {
		return f.String(b)
	}
	return keytext.JSON(b)
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
