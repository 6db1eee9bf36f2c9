package report

import (
	"bytes"
	"fmt"
	"io"
)

// A Page is the text of a report.
type Page struct{ bytes.Buffer }

// write makes a text and writes it whole.
func write(w io.Writer, text func(out *Page)) error {
	var out Page
	text(&out)
	_, err := out.WriteTo(w)
	return err
}

// Printf writes formatted text.
func (out *Page) Printf(format string, args ...any) { fmt.Fprintf(out, format, args...) }

// Grid writes a table after an empty line.
func (out *Page) Grid(g *Grid) { out.WriteString("\n" + g.Text()) }

// List writes items under a title, each in a line that the terminal wraps.
func (out *Page) List(title string, items ...string) {
	if len(items) == 0 {
		return
	}
	out.Printf("\n%s\n\n", title)
	for _, item := range items {
		out.Printf("  - %s\n", item)
	}
}

// End writes what is at the end of most reports.
func (out *Page) End(warnings []string, seconds float64) {
	out.List("Warnings", warnings...)
	out.Printf("\n%.0f s in all\n", seconds)
}
