package kv

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The text of options has a line for each field that is set, under its name in Options:
//
//	# Comments are lines of their own.
//	MemtableSize = 64MiB
//	Filter = blocked:12
//
// A value that begins or ends with a space, begins with a quotation mark or has characters that
// cannot be printed is a string as Go quotes it.

// maxTextFaults is how many faults ParseOptions reports at most.
const maxTextFaults = 20

// ParseOptions makes options of a text. Each line is
//
//	Name = value
//
// where Name is a field of Options. Blank lines, and those that begin with #, mean nothing. A field
// without a line has its default; one with two lines is an error. Values are:
//
//   - Sizes as 64MiB, 1.5GiB or a plain number of bytes, other numbers as they are.
//   - True and false, in lower case.
//   - Filter, Prefix and RangeFilter as filterpolicy.Parse, ParsePrefix and ParseRange read them.
//   - Compression, Compaction and RecoveryMode by name: zstd, lazy-leveled, TolerateTornTail.
//   - LevelCompression for each level, beginning with 0, with commas: none, default, zstd.
//   - Merger by the name of a merger of this package: Int64Add's is siftkv.int64add.
//   - FileMode as an octal number, PollInterval as time.ParseDuration reads it.
//   - Any of them quoted as in Go, if spaces at its ends count: "delimiter: ".
//
// Clock, Logger, Events, Objects and MemoryBudget have no text, nor have a Merger, a Filter, a Prefix and a
// RangeFilter of the application's own. Set them in the result.
//
// Errors match ErrInvalidOptions, and name the line, the field and what is wrong, up to 20 of them.
// Open checks whether a value is within the field's bounds.
func ParseOptions(text string) (*Options, error) {
	o := &Options{}
	seen := map[string]int{}
	var faults []error
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := o.parseLine(line, n, seen); err != nil {
			faults = append(faults, invalidf("line %d: %v", n, err))
		}
		if len(faults) == maxTextFaults {
			break
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return o, nil
}

// parseLine sets the field of line n. Seen has the lines of those that were set.
func (o *Options) parseLine(line string, n int, seen map[string]int) error {
	name, value, ok := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok {
		return fmt.Errorf("%.100q is not of the form Name = value", line)
	}
	i := slices.IndexFunc(optionFields, func(f optionField) bool { return f.name == name })
	switch {
	case i < 0 && fieldsWithoutText[name] != "" && name[0] < 'a':
		return fmt.Errorf("%s: it has no text (%s): set it in the program", name, fieldsWithoutText[name])
	case i < 0:
		return fmt.Errorf("%.100q is not a field of Options", name)
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
	if err := optionFields[i].parse(o, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// String returns the text of the options, from which ParseOptions makes the same: one line for each field that is set,
// in the order of Options. Fields without a text are left out; a Merger, a Filter, a Prefix and a RangeFilter of the
// application's own are named in comments. A nil o is all defaults, whose text is empty.
func (o *Options) String() string {
	var b strings.Builder
	if o == nil {
		o = &Options{}
	}
	for _, f := range optionFields {
		o.appendField(&b, f)
	}
	return b.String()
}

// appendField appends the line of a field, and reports whether there is one.
func (o *Options) appendField(b *strings.Builder, f optionField) bool {
	switch text, own := f.text(o); {
	case text != "":
		fmt.Fprintf(b, "%s = %s\n", f.name, quoted(text))
	case own != "":
		fmt.Fprintf(b, "# %s = %s: the application's own\n", f.name, quoted(own))
	default:
		return false
	}
	return true
}

// quoted returns a value as it is written in a line.
func quoted(value string) string {
	q := strconv.Quote(value)
	if q[1:len(q)-1] != value || strings.TrimSpace(value) != value {
		return q
	}
	return value
}
