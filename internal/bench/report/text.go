// Package report renders results: tables for people, CSV and text for benchstat. Every
// number it prints is in the JSON of a result, or a quotient of two numbers that are.
package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/bench/measure"
)

// A page is the text of a report.
type page struct{ bytes.Buffer }

// write makes a text and writes it whole.
func write(w io.Writer, text func(out *page)) error {
	var out page
	text(&out)
	_, err := out.WriteTo(w)
	return err
}

// printf writes formatted text.
func (out *page) printf(format string, args ...any) { fmt.Fprintf(out, format, args...) }

// grid writes a table after an empty line.
func (out *page) grid(g *Grid) { out.WriteString("\n" + g.Text()) }

// list writes items under a title, each in a line that the terminal wraps.
func (out *page) list(title string, items ...string) {
	if len(items) == 0 {
		return
	}
	out.printf("\n%s\n\n", title)
	for _, item := range items {
		out.printf("  - %s\n", item)
	}
}

// end writes what is at the end of most reports.
func (out *page) end(warnings []string, seconds float64) {
	out.list("Warnings", warnings...)
	out.printf("\n%.0f s in all\n", seconds)
}

// identities says which equations hold, and shows those that do not.
func (out *page) identities(ids *measure.Identities) {
	verdict := "all hold"
	if n := len(ids.Failures); n > 0 {
		verdict = count(n) + " DO NOT HOLD"
	}
	out.printf("\nIdentities: %s checked, %s (%s more need a counter that the engine does not keep)\n\n",
		count(ids.Checked), verdict, count(ids.Unknown))
	for _, rule := range ids.Rules {
		out.printf("  %s\n", rule)
	}
	const shown = 10
	for _, f := range slices.Clip(ids.Failures)[:min(shown, len(ids.Failures))] {
		out.printf("  BROKEN: %s\n", f)
	}
}
