package cli

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// An argument of a process is a row of bytes, and so is the name of a file. kong takes
// texts through JSON and splits lists rune by rune; both put U+FFFD in place of what
// is not UTF-8. The mappers here keep every byte.
func keepBytes() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		return errors.Join(
			kong.KindMapper(reflect.String, kong.MapperFunc(decodeText)).Apply(k),
			kong.KindMapper(reflect.Int, kong.MapperFunc(decodeInt)).Apply(k),
			kong.TypeMapper(reflect.TypeFor[[]string](), kong.MapperFunc(decodeTexts)).Apply(k),
		)
	})
}

func decodeText(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	target.SetString(t.String())
	return nil
}

func decodeInt(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("int")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(t.String(), 0, 0)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is too large a number", t)
	case err != nil:
		return fmt.Errorf("%q is no whole number: write its digits, such as 1000000", t)
	}
	target.SetInt(n)
	return nil
}

// shortNumber is a number of keys with an exponent or a unit.
var shortNumber = regexp.MustCompile(`^[0-9._]+([eE]\+?[0-9]+|[kKmMgG](i?[bB])?)?$`)

// IsShortNumber reports whether a text reads as a number and is not one in digits: 1e6, 1M, 1_000.
func IsShortNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err != nil && shortNumber.MatchString(text)
}

// decodeTexts reads the list that a flag has as its value, or all of the arguments that
// follow.
func decodeTexts(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Value.Flag == nil {
		for _, t := range ctx.Scan.PopWhile(kong.Token.IsValue) {
			target.Set(reflect.Append(target, reflect.ValueOf(t.String())))
		}
		return nil
	}
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	list := []string{t.String()}
	if sep := ctx.Value.Tag.Sep; sep != -1 {
		list = split(t.String(), string(sep))
	}
	target.Set(reflect.AppendSlice(target, reflect.ValueOf(list)))
	return nil
}

// split cuts a text at a separator; one after a backslash is part of the text. An
// empty text at the end is left out.
func split(s, sep string) []string {
	var list []string
	part := ""
	for {
		before, after, found := strings.Cut(s, sep)
		switch {
		case !found:
			if part += before; part != "" {
				list = append(list, part)
			}
			return list
		case strings.HasSuffix(before, `\`):
			part += strings.TrimSuffix(before, `\`) + sep
		default:
			list, part = append(list, part+before), ""
		}
		s = after
	}
}
