package fieldtext

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxFaults is how many faults Parse reports at most.
const maxFaults = 20

// Fields are the fields of a struct that have a text, in the order in which they are written.
type Fields struct {
	Of      string // the name of the struct, for errors
	List    []Field
	Without map[string]string // exported fields that have no text, and why
	With    map[string]string // fields that are the application's own if another is, which is before them in List
}

// Parse sets the fields of the struct that o points to, if a text has lines for them. Its errors name the line, the
// field and what is wrong, up to 20 of them.
func (f *Fields) Parse(o any, text string) []error {
	seen := map[string]int{}
	var faults []error
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := f.parseLine(reflect.ValueOf(o).Elem(), line, n, seen); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", n, err))
		}
		if len(faults) == maxFaults {
			break
		}
	}
	return faults
}

// parseLine sets the field of line n. Seen has the lines of those that were set.
func (f *Fields) parseLine(o reflect.Value, line string, n int, seen map[string]int) error {
	name, value, ok := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok {
		return fmt.Errorf("%.100q is not of the form Name = value", line)
	}
	i := slices.IndexFunc(f.List, func(f Field) bool { return f.Name == name })
	switch {
	case i < 0 && f.Without[name] != "" && name[0] < 'a':
		return fmt.Errorf("%s: it has no text (%s): set it in the program", name, f.Without[name])
	case i < 0:
		return fmt.Errorf("%.100q is not a field of %s", name, f.Of)
	case seen[name] > 0:
		return fmt.Errorf("%s: line %d has set it", name, seen[name])
	}
	seen[name] = n
	if strings.HasPrefix(value, `"`) {
		unquoted, err := strconv.Unquote(value)
		if err != nil {
			return fmt.Errorf("%s: %.100s is not a quoted string", name, value)
		}
		value = unquoted
	}
	if err := f.List[i].Form.Parse(o.FieldByName(name), value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Format returns the text of the struct that o points to, from which Parse sets the same fields. What only the
// application can make is named in comments. With all, which is of the same type or nil, fields that o does not set are
// comments too, with what all has.
func (f *Fields) Format(o, all any) string {
	var b strings.Builder
	foreign := map[string]bool{}
	for _, field := range f.List {
		text, own := field.text(o)
		if foreign[f.With[field.Name]] {
			text, own = "", text
		}
		foreign[field.Name] = own != ""
		switch {
		case text != "":
			fmt.Fprintf(&b, "%s = %s\n", field.Name, quoted(text))
		case own != "":
			fmt.Fprintf(&b, "# %s = %s: the application's own\n", field.Name, quoted(own))
		case all != nil:
			if text, _ := field.text(all); text != "" {
				fmt.Fprintf(&b, "# %s = %s\n", field.Name, quoted(text))
			}
		}
	}
	return b.String()
}

// text returns the text of a field of o, or a name in place of it. A field with its zero value has neither.
func (f Field) text(o any) (text, own string) {
	v := reflect.ValueOf(o).Elem().FieldByName(f.Name)
	if v.IsZero() {
		return "", ""
	}
	return f.Form.Text(v)
}

// quoted returns a value as it is written in a line.
func quoted(value string) string {
	q := strconv.Quote(value)
	if q[1:len(q)-1] != value || strings.TrimSpace(value) != value {
		return q
	}
	return value
}

// Join returns the faults of Parse as one error that matches a sentinel; nil if there is none.
func Join(sentinel error, faults []error) error {
	for i, err := range faults {
		faults[i] = fmt.Errorf("%w: %w", sentinel, err)
	}
	return errors.Join(faults...)
}
