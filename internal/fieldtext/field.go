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
	"time"

	"github.com/siftkv/siftkv/internal/bytesize"
)

// A Field is a field of a struct that has a text.
type Field struct {
	Name string
	Form Form
}

// A Form is how the values of a field are written. The linker leaves Parse out of programs that only format options,
// with all that it uses.
type Form interface {
	// Text returns the text of a value that is not the zero value. It returns a name in place of the text for what
	// only the application can make.
	Text(v reflect.Value) (text, own string)

	// Parse sets the value. Its error says what is wrong with the text.
	Parse(v reflect.Value, text string) error
}

// Set sets v, which is of the type T, to what parse makes of a text.
func Set[T any](v reflect.Value, text string, parse func(string) (T, error)) (err error) {
	*v.Addr().Interface().(*T), err = parse(text)
	return err
}

// Value makes a field of values with functions of their own.
func Value[T any](name string, format func(T) string, parse func(string) (T, error)) Field {
	return Field{name, value[T]{format, parse}}
}

type value[T any] struct {
	format func(T) string
	parse  func(text string) (T, error)
}

func (f value[T]) Text(v reflect.Value) (text, own string)  { return f.format(v.Interface().(T)), "" }
func (f value[T]) Parse(v reflect.Value, text string) error { return Set(v, text, f.parse) }

// Named makes a field of an interface type T, whose values are parsed from their names. A value that is parsed from
// the name of another type's is the application's own.
func Named[T any](name string, nameOf func(T) string, parse func(string) (T, error)) Field {
	return Field{name, named[T]{nameOf, parse}}
}

type named[T any] struct {
	nameOf func(T) string
	parse  func(name string) (T, error)
}

func (f named[T]) Text(v reflect.Value) (text, own string) {
	text = f.nameOf(v.Interface().(T))
	if p, err := f.parse(text); err == nil && reflect.TypeOf(p) == v.Elem().Type() {
		return text, ""
	}
	return "", text
}

func (f named[T]) Parse(v reflect.Value, text string) error { return Set(v, text, f.parse) }

// Bool makes a field that is true or false.
func Bool(name string) Field {
	return Value(name, strconv.FormatBool, func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("%.100q is neither true nor false", text)
		}
		return text == "true", nil
	})
}

// Ratio makes a field of a finite number.
func Ratio(name string) Field { return Field{name, ratio{}} }

type ratio struct{}

func (ratio) Text(v reflect.Value) (text, own string) {
	return strconv.FormatFloat(v.Float(), 'g', -1, 64), ""
}

func (ratio) Parse(v reflect.Value, text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%.100q is not a number", text)
	}
	v.SetFloat(f)
	return nil
}

// Duration makes a field of a time.Duration.
func Duration(name string) Field { return Field{name, duration{}} }

type duration struct{}

func (duration) Text(v reflect.Value) (text, own string)  { return time.Duration(v.Int()).String(), "" }
func (duration) Parse(v reflect.Value, text string) error { return Set(v, text, time.ParseDuration) }

// Count makes a field of a whole number.
func Count(name string) Field { return Field{name, number{}} }

// Size makes a field of bytes. It may be negative, where that means something.
func Size(name string) Field { return Field{name, number{bytes: true}} }

type number struct{ bytes bool }

func (f number) Text(v reflect.Value) (text, own string) {
	if f.bytes {
		return bytesize.Format(v.Int()), ""
	}
	return strconv.FormatInt(v.Int(), 10), ""
}

func (f number) Parse(v reflect.Value, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && f.bytes:
		if n, err = bytesize.Parse(text); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("%.100q is not a whole number", text)
	}
	if v.OverflowInt(n) {
		return fmt.Errorf("%.100q is too large", text)
	}
	v.SetInt(n)
	return nil
}
