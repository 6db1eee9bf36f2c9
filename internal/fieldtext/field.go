// Package fieldtext gives a struct of options a text, with a line for each field that is set:
//
//	# Comments are lines of their own.
//	MemtableSize = 64MiB
//	Filter = blocked:12
//
// A value that begins or ends with a space, begins with a quotation mark or has characters that
// cannot be printed is a string as Go quotes it.
package fieldtext

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/siftkv/siftkv/internal/bytesize"
)

// A Field is a field of the struct O that has a text.
type Field[O any] struct {
	Name string

	// Text returns the field's text, and nothing for the zero value. It returns a name in place
	// of the text for what only the application can make.
	Text func(o *O) (text, own string)

	// Parse sets the field. Its error says what is wrong with the text.
	Parse func(o *O, text string) error
}

// Value makes a field whose zero value has no text.
func Value[O any, T comparable](name string, at func(*O) *T, text func(T) string,
	parse func(string) (T, error)) Field[O] {
	return Field[O]{Name: name,
		Text: func(o *O) (string, string) {
			if v := *at(o); v != *new(T) {
				return text(v), ""
			}
			return "", ""
		},
		Parse: func(o *O, text string) (err error) {
			*at(o), err = parse(text)
			return err
		}}
}

// Named makes a field of an interface type T, whose values are parsed from their names. A value that is parsed from
// the name of another type's is the application's own.
func Named[O, T any](name string, at func(*O) *T, nameOf func(T) string, parse func(string) (T, error)) Field[O] {
	return Field[O]{Name: name,
		Text: func(o *O) (text, own string) {
			v := *at(o)
			if reflect.ValueOf(at(o)).Elem().IsNil() {
				return "", ""
			}
			text = nameOf(v)
			if p, err := parse(text); err == nil && reflect.TypeOf(p) == reflect.TypeOf(v) {
				return text, ""
			}
			return "", text
		},
		Parse: func(o *O, text string) (err error) {
			*at(o), err = parse(text)
			return err
		}}
}

// Bool makes a field that is true or false.
func Bool[O any](name string, at func(*O) *bool) Field[O] {
	return Value(name, at, strconv.FormatBool, func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("%.100q is neither true nor false", text)
		}
		return text == "true", nil
	})
}

// Count makes a field of a whole number.
func Count[O any](name string, at func(*O) *int) Field[O] {
	return Value(name, at, strconv.Itoa, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			err = fmt.Errorf("%.100q is not a whole number", text)
		}
		return n, err
	})
}

// Size makes a field of bytes. It may be negative, where that means something.
func Size[O any, N int | int64](name string, at func(*O) *N) Field[O] {
	return Value(name, at, func(n N) string { return bytesize.Format(int64(n)) }, func(text string) (N, error) {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			size, err = bytesize.Parse(text)
		}
		if err == nil && int64(N(size)) != size {
			err = fmt.Errorf("%.100q is too large", text)
		}
		return N(size), err
	})
}

// Ratio makes a field of a finite number.
func Ratio[O any](name string, at func(*O) *float64) Field[O] {
	format := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	return Value(name, at, format, func(text string) (float64, error) {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, fmt.Errorf("%.100q is not a number", text)
		}
		return f, nil
	})
}
