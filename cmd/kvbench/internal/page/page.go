// Package page has what reports are made of: a page of text, tables, and numbers with as many digits as they deserve.
package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// A Page is the text of a report.
type Page struct{ bytes.Buffer }

// Write makes a text and writes it whole.
func Write(w io.Writer, text func(out *Page)) error {
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
