package storecmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/keytext"
)

// Commands print to a buffer, which keeps the first error: run flushes it and reports.

// printf prints a line or a piece of one.
func (p *program) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// printJSON prints one of several objects, on a line.
func (p *program) printJSON(v any) { _ = encodeJSON(p.out, v, "") }

// indentJSON prints the object that is the whole output.
func (p *program) indentJSON(v any) { _ = encodeJSON(p.out, v, "  ") }

// printed returns the error of writing the output, for commands that print much.
func (p *program) printed() error {
	_, err := p.out.Write(nil)
	return err
}

// answer prints the result of a command: an object, or text, of which there may be none.
func (p *program) answer(v any, format string, args ...any) {
	if p.JSON {
		p.printJSON(v)
	} else {
		p.printf(format, args...)
	}
}

// report prints a result that has a text of its own.
func (p *program) report(r interface{ WriteText(w io.Writer) error }) error {
	if p.JSON {
		p.indentJSON(r)
		return p.printed()
	}
	return r.WriteText(p.out)
}

func encodeJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// An object is one of JSON: names and values by turns, in the order of the output. A value that is nil is left out.
type object []any

func (o object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i := 0; i < len(o); i += 2 {
		if o[i+1] == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		if err := encodeJSON(b, o[i], ""); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encodeJSON(b, o[i+1], ""); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// present is a value, and nil in place of a zero one.
func present[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// all calls f with the names and values that are not nil.
func (o object) all(f func(name, text string, value any)) {
	for i := 0; i < len(o); i += 2 {
		if o[i+1] != nil {
			f(fmt.Sprint(o[i]), textOf(o[i+1]), o[i+1])
		}
	}
}

// textOf is the text of a value; of an object it is names and values, with commas between them.
func textOf(v any) string {
	switch v := v.(type) {
	case object:
		var parts []string
		v.all(func(name, text string, _ any) { parts = append(parts, name+" "+text) })
		return strings.Join(parts, ", ")
	case []object:
		var parts []string
		for _, o := range v {
			parts = append(parts, "("+textOf(o)+")")
		}
		return strings.Join(parts, " ")
	case keytext.ID:
		return fmt.Sprintf("%016x", uint64(v))
	case string:
		return keytext.Line(v)
	}
	return fmt.Sprint(v)
}

// A formatted is a key or a value in a row, in the format of the command line.
type formatted struct {
	keyformat.Format
	bytes []byte
}

func (f formatted) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := encodeJSON(&b, f.JSON(f.bytes), "")
	return b.Bytes(), err
}

func (f formatted) String() string { return f.Format.String(f.bytes) }

func (p *program) formatted(b []byte) formatted { return formatted{p.KeyFormat, b} }

// A keyBound is a bound of a file's keys in a row: text has it in the format of the command line, JSON as all reports
// have keys.
type keyBound struct {
	keyformat.Bytes
	format keyformat.Format
}

func (k keyBound) String() string {
	if k.Bytes == nil {
		return "none"
	}
	return k.format.String(k.Bytes)
}

func (p *program) keyBound(key []byte) keyBound { return keyBound{key, p.KeyFormat} }

// row prints one of many results. It has a type, fields, and data. In text, tabs separate the fields, and each part of
// the data has a line.
func (p *program) row(kind string, fields, data object) error {
	if p.JSON {
		o := append(object{"type", kind}, fields...)
		if data != nil {
			o = append(o, "data", data)
		}
		p.printJSON(o)
		return p.printed()
	}
	prefix := "# "
	if len(fields) > 0 {
		var columns []string
		fields.all(func(_, text string, _ any) { columns = append(columns, text) })
		prefix = "\t"
		p.printf("%s\n", strings.Join(columns, "\t"))
	}
	data.all(func(name, text string, value any) {
		list, ok := value.([]object)
		if !ok && text != "" {
			p.printf("%s%s: %s\n", prefix, name, text)
		}
		for _, o := range list {
			p.printf("%s%s: %s\n", prefix, name, textOf(o))
		}
	})
	return p.printed()
}

// table prints results with the same fields: objects, or a line for each below a line of their names.
func (p *program) table(rows []object) error {
	if p.JSON {
		for _, o := range rows {
			p.printJSON(o)
		}
		return p.printed()
	}
	out := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for i, o := range rows {
		var names, columns []string
		o.all(func(name, text string, _ any) {
			names, columns = append(names, strings.ToUpper(name)), append(columns, cmp.Or(text, "-"))
		})
		if i == 0 {
			_, _ = fmt.Fprintln(out, strings.Join(names, "\t")) // Flush returns the error
		}
		_, _ = fmt.Fprintln(out, strings.Join(columns, "\t"))
	}
	return out.Flush()
}

// parse reads a key or value of the command line.
func (p *program) parse(name, s string) ([]byte, error) {
	b, err := p.KeyFormat.Parse(s)
	if err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	return b, nil
}

// parseBound reads a bound; empty is none.
func (p *program) parseBound(name, s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	return p.parse(name, s)
}

// parseRange reads the bounds of a range, which must not be the wrong way round.
func (p *program) parseRange(lower, upper string) (lo, hi []byte, err error) {
	if lo, err = p.parseBound("--lower", lower); err != nil {
		return nil, nil, err
	}
	if hi, err = p.parseBound("--upper", upper); err != nil {
		return nil, nil, err
	}
	if hi != nil && bytes.Compare(lo, hi) > 0 {
		return nil, nil, usagef("--lower %s is after --upper %s", lower, upper)
	}
	return lo, hi, nil
}
