// Package keytext writes names and messages as text that is safe on a terminal and in JSON. Names of files and ids have
// a form in JSON here, too.
package keytext

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

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

// JSON makes b a value of encoding/json: a string if b is valid UTF-8, and else an object {"base64": "..."}, so that no
// byte is lost.
func JSON(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return map[string][]byte{"base64": b}
}

// A Name is that of a file or a directory in a report: JSON as the function JSON has it.
type Name string

// String returns the name as Line has it.
func (n Name) String() string { return Line(string(n)) }

// MarshalJSON implements json.Marshaler.
func (n Name) MarshalJSON() ([]byte, error) { return json.Marshal(JSON([]byte(n))) }

// An ID tells a store, a file or a hash from all others, and is no number to count with: JSON as 16 hexadecimal digits.
// As a number, readers that compute in floating point would round it.
type ID uint64

// MarshalJSON implements json.Marshaler.
func (id ID) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%016x"`, uint64(id)), nil }
