package storecmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// An object is one of JSON: names and values by turns, in the order of the output.
type object []any

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, v := range o {
		switch {
		case i == 0:
			b.WriteByte('{')
		case i%2 == 0:
			b.WriteByte(',')
		default:
			b.WriteByte(':')
		}
		if err := encodeJSON(&b, v, ""); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
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
