// Package bench is the laboratory behind kvbench: it asks engines the same
// questions about the same keys and counts what each answer costs.
//
// The parts, from the bottom up; a package imports only those of lines above its own:
//
//	environ   the machine a result was taken on
//	keys      which keys exist, which absent keys lie between them, and the value of each
//	engine    stores under one interface: SiftKV, null, and its peers
//	measure   loads, streams of lookups, timed loops that check every answer, statistics
//	tidy      results as rows: a cell, a metric, a repetition, a value, a unit
//	cell      one experiment: settings in, a result out
//	filters, traceinfo, compare
//	          experiments of their own: filters alone, what
//	          is in a trace, engines in processes of their own
//	readamp   what a lookup reads, by engine and filter
//	results   sets of cells: their files, tables of some settings, what differs between two
//	report, report/chart
//	          results as tables and CSV; as charts and a page
//	sweep     matrices of cells, resumable
//
// This package itself holds what they share: the errors that become exit statuses, and
// sizes as flags and reports have them.
package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/siftkv/siftkv/internal/bytesize"
	"github.com/siftkv/siftkv/internal/cli"
)

// Errors that commands tell apart by exit status.
var (
	// ErrUsage marks a wrong flag, argument or input file.
	ErrUsage = cli.ErrUsage
	// ErrWrongAnswer marks an engine that answered a lookup wrongly.
	ErrWrongAnswer = errors.New("wrong answer")
	// ErrIdentity marks counters that contradict each other.
	ErrIdentity = errors.New("identity broken")
	// ErrThreshold marks a change that a threshold forbids.
	ErrThreshold = errors.New("threshold passed")
	// ErrSomeFailed marks a sweep of which some cells have no result.
	ErrSomeFailed = errors.New("some cells failed")
)

// Exit statuses of every kvbench command.
const (
	StatusOK          = 0   // the result stands
	StatusInternal    = 1   // I/O or internal error, damage found
	StatusUsage       = 2   // wrong flag, argument or input file
	StatusWrong       = 3   // wrong answer, or counters that do not add up
	StatusThreshold   = 4   // a change that a threshold forbids
	StatusSomeFailed  = 5   // a sweep with cells that failed
	StatusInterrupted = 130 // stopped by a signal (128 + SIGINT)
)

// Status returns the exit status that belongs to err; nil is StatusOK.
func Status(err error) int {
	switch {
	case err == nil:
		return StatusOK
	case errors.Is(err, ErrWrongAnswer), errors.Is(err, ErrIdentity):
		return StatusWrong
	case errors.Is(err, ErrUsage):
		return StatusUsage
	case errors.Is(err, context.Canceled):
		return StatusInterrupted
	case errors.Is(err, ErrThreshold):
		return StatusThreshold
	case errors.Is(err, ErrSomeFailed):
		return StatusSomeFailed
	}
	return StatusInternal
}

// Usagef returns an error that matches ErrUsage and reads exactly as formatted;
// %w wraps a cause.
func Usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// A Size is a number of bytes. As a flag it accepts a plain number of bytes or
// a number with a binary (KiB, MiB, GiB, TiB) or decimal (kB, MB, GB, TB) unit, in any
// letter case.
type Size int64

// Binary units.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// ParseSize reads a size. The result is whole and not negative.
func ParseSize(text string) (Size, error) {
	n, err := bytesize.Parse(text)
	return Size(n), err
}

// UnmarshalText makes Size a flag value.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err == nil {
		*s = v
	}
	return err
}

// String prints the size in the largest binary unit that keeps it at least 1,
// with one decimal unless it is whole.
func (s Size) String() string {
	for _, u := range []struct {
		unit Size
		name string
	}{{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		switch {
		case s < u.unit:
		case s%u.unit == 0:
			return fmt.Sprintf("%d %s", s/u.unit, u.name)
		default:
			return fmt.Sprintf("%.1f %s", float64(s)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(s))
}

// Compressions lists the names of compressions that a store may be made with.
var Compressions = []string{"none", "snappy", "zstd"}

// Within reports the first of some values of a flag that is not within its bounds.
func Within[N int | int64](flag string, low, high int64, values ...N) error {
	for _, x := range values {
		if int64(x) < low || int64(x) > high {
			return Usagef("%s %d: want %d to %d", flag, x, low, high)
		}
	}
	return nil
}

// CheckTwice reports the first of some values of a flag that is given before: what is measured of both would be one
// cell.
func CheckTwice[T comparable](flag string, given []T) error {
	for i, x := range given {
		if slices.Contains(given[:i], x) {
			return Usagef("%s: %v is given twice", flag, x)
		}
	}
	return nil
}

// CheckNames reports an empty list, the first name that is not among those allowed, and one that is given twice.
func CheckNames(flag string, given, allowed []string) error {
	for _, name := range given {
		if !slices.Contains(allowed, name) {
			return Usagef("%s %s: choose from %s", flag, name, strings.Join(allowed, ", "))
		}
	}
	if len(given) == 0 {
		return Usagef("%s: nothing to measure; choose from %s", flag, strings.Join(allowed, ", "))
	}
	return CheckTwice(flag, given)
}

// Specs reads what --filter names, in any form. No two may be the same.
func Specs[F fmt.Stringer](specs []string, parse func(spec string) (F, error)) (all []F, err error) {
	var names []string
	for _, spec := range specs {
		f, err := parse(spec)
		if err != nil {
			return nil, Usagef("--filter: %w", err)
		}
		all, names = append(all, f), append(names, f.String())
	}
	return all, CheckTwice("--filter", names)
}

// CheckSeconds reports a time of a workload that makes no sense.
func CheckSeconds(seconds float64) error {
	if seconds <= 0 || seconds > 3600 {
		return Usagef("--seconds %g: want more than 0, up to 3600", seconds)
	}
	return nil
}

// Probing is what measurements of filters by themselves have in common.
type Probing struct {
	Keys        []int  `json:"-"`      // numbers of keys
	Probes      int    `json:"probes"` // keys, or ranges of each kind, that are not there
	Repetitions int    `json:"repetitions"`
	Seed        uint64 `json:"seed"`
}

// Check reports the first number that makes no sense.
func (p *Probing) Check(minKeys, maxKeys int64) error {
	if len(p.Keys) == 0 {
		return Usagef("--keys: want at least one number, such as 100000")
	}
	return cmp.Or(Within("--probes", 1000, 1<<30, p.Probes), Within("--reps", 1, 1000, p.Repetitions),
		Within("--keys", minKeys, maxKeys, p.Keys...), CheckTwice("--keys", p.Keys))
}

// Remarks are sentences for the reader of a result.
type Remarks []string

// If adds a sentence if it applies.
func (r *Remarks) If(applies bool, format string, args ...any) {
	if applies {
		*r = append(*r, fmt.Sprintf(format, args...))
	}
}

// Bytes formats a number of bytes.
func Bytes[N int | int64 | uint64 | float64](bytes N) string { return Size(bytes).String() }

// Times says how many of something there are.
func Times(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Count shows a whole number of any type.
func Count(n any) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Table returns what a YAML file that is a part of the program says. It panics with the name of a file that is wrong,
// or that has a key which T does not have.
func Table[T any](name string, file []byte) (t T) {
	in := yaml.NewDecoder(bytes.NewReader(file))
	in.KnownFields(true)
	if err := in.Decode(&t); err != nil {
		panic(fmt.Errorf("read %s: %w", name, err))
	}
	return t
}

// JSON returns a result as indented JSON that ends with a line feed.
func JSON(result any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(result); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return out.Bytes(), nil
}
