// Package report renders results: tables for people, and CSV. Every
// number it prints is in the JSON of a result, or is computed from numbers that are: a
// median, an interval or a quotient.
package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// identities says which equations hold, and shows those that do not.
func identities(out *Page, ids *measure.Identities) {
	verdict := "all hold"
	if n := len(ids.Failures); n > 0 {
		verdict = count(n) + " DO NOT HOLD"
	}
	out.Printf("\nIdentities: %s checked, %s (%s more need a counter that the engine does not keep)\n\n",
		count(ids.Checked), verdict, count(ids.Unknown))
	for _, rule := range ids.Rules {
		out.Printf("  %s\n", rule)
	}
	const shown = 10
	for _, f := range slices.Clip(ids.Failures)[:min(shown, len(ids.Failures))] {
		out.Printf("  BROKEN: %s\n", f)
	}
}

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

// pageWidth is the widest line of a report, except tables and notes.
const pageWidth = 160

// Machine writes the parts of a machine's description in as many lines as they need.
func (out *Page) Machine(text string) {
	line := "machine  "
	for i, part := range strings.Split(text, " · ") {
		switch {
		case i == 0:
			line += " " + part
		case utf8.RuneCountInString(line+" · "+part) <= pageWidth:
			line += " · " + part
		default:
			out.Printf("%s\n", line)
			line = strings.Repeat(" ", len("machine   ")) + part
		}
	}
	out.Printf("%s\n", line)
}

// End writes what is at the end of most reports. Without seconds there is no line about them.
func (out *Page) End(warnings []string, seconds float64) {
	out.List("Warnings", warnings...)
	if seconds > 0 {
		out.Printf("\n%.0f s in all\n", seconds)
	}
}

// A Grid is a table that every format shows in its own way.
type Grid struct {
	Title   string   `json:"title"`
	Columns []Column `json:"columns"`
	Rows    [][]Item `json:"rows"`

	lines bool // names of columns say where lines end; else each word has a line of its own
}

// A Column has a name and says what is in it.
type Column struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Text bool   `json:"text"` // of words, not numbers
}

// An Item is what stands in a table, and what it is sorted by. Sort is null for words
// and for what is not known.
type Item struct {
	Text string   `json:"text"`
	Sort *float64 `json:"sort"`
}

// newGrid makes a table whose first columns have words, the others numbers.
func newGrid(title string, words int, names ...string) *Grid {
	g := &Grid{Title: title}
	for i, name := range names {
		g.Columns = append(g.Columns, Column{Name: name, Text: i < words})
	}
	return g
}

// newLines is newGrid for names with line feeds where they should have them.
func newLines(title string, words int, names ...string) *Grid {
	g := newGrid(title, words, names...)
	g.lines = true
	return g
}

// Add appends a row of items, texts and whole numbers.
func (g *Grid) Add(values ...any) {
	row := make([]Item, len(values))
	for i, value := range values {
		switch v := value.(type) {
		case Item:
			row[i] = v
		case string:
			row[i] = word(v)
		default:
			row[i] = word(count(v))
		}
	}
	g.Rows = append(g.Rows, row)
}

func word(text string) Item { return Item{Text: text} }

// number is an item of a number; NaN is not known.
func number(x float64, text string) Item {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return word(absentCell)
	}
	return Item{Text: text, Sort: &x}
}

func (g *Grid) writer(name func(Column) string) table.Writer {
	t := table.NewWriter()
	header := table.Row{}
	for _, c := range g.Columns {
		header = append(header, name(c))
	}
	t.AppendHeader(header)
	for _, items := range g.Rows {
		row := table.Row{}
		for _, item := range items {
			row = append(row, item.Text)
		}
		t.AppendRow(row)
	}
	return t
}

// Text returns the grid for a terminal: without frames, and with words to the left as
// far as only words stand before them.
func (g *Grid) Text() string {
	t := g.writer(func(c Column) string {
		if g.lines {
			return c.Name
		}
		return strings.ReplaceAll(c.Name, " ", "\n")
	})
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Box.MiddleHorizontal = "─"
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	columns, left := make([]table.ColumnConfig, len(g.Columns)), true
	for i, c := range g.Columns {
		align := text.AlignRight
		if left = left && c.Text; left {
			align = text.AlignLeft
		}
		columns[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	t.SetColumnConfigs(columns)
	return g.Title + "\n\n" + t.Render() + "\n"
}

// Markdown returns the grid as a heading and a table.
func (g *Grid) Markdown() string {
	t := g.writer(func(c Column) string { return c.Name })
	var columns []table.ColumnConfig
	for i, c := range g.Columns {
		if !c.Text {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight})
		}
	}
	t.SetColumnConfigs(columns)
	return "## " + g.Title + "\n\n" + t.RenderMarkdown() + "\n"
}

// absentCell marks what an engine does not count, or what does not apply.
const absentCell = "-"

func times(n int, noun string) string                       { return bench.Times(n, noun) }
func count(n any) string                                    { return bench.Count(n) }
func size[N int | int64 | uint64 | float64](bytes N) string { return bench.Bytes(bytes) }

// fixed formats a number with a number of digits after the point.
func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// A step says how many digits after the point a number has if it reaches the step.
type step struct {
	from   float64
	digits int
}

// grouping is for whole numbers, with a comma between groups of three digits.
const grouping = -1

// steps formats a number as the first step says that it reaches.
func steps(x float64, list ...step) string {
	for _, s := range list {
		switch {
		case x < s.from:
		case s.digits == grouping:
			return whole(x)
		default:
			return fixed(x, s.digits)
		}
	}
	return fixed(x, list[len(list)-1].digits)
}

// figure formats a number with about three digits.
func figure(x float64) string { return steps(x, step{100, grouping}, step{10, 1}, step{0, 2}) }

func bits(x float64) string {
	if x == 0 {
		return absentCell
	}
	return fixed(x, 2)
}

// whole formats a positive number, rounded.
func whole(x float64) string { return count(int64(x + 0.5)) }

// threeDigits formats a number with three digits or more, however small. Zero is "0".
func threeDigits(x float64) string {
	if x == 0 {
		return "0"
	}
	return steps(x, step{1000, grouping}, step{10, 1}, step{1, 2}, step{0.1, 3}, step{0.01, 4}, step{0.001, 5},
		step{0, 6})
}

func perOp(c engine.Count, lookups int) string {
	if !c.Known() || lookups == 0 {
		return absentCell
	}
	return perOne(float64(c) / float64(lookups))
}

// perOne formats a count per operation. Zero is "0", so that a true zero stands out from a small number.
func perOne(x float64) string {
	if x == 0 {
		return "0"
	}
	return steps(x, step{100, grouping}, step{10, 1}, step{1, 3}, step{0, 4})
}

// percent formats a fraction with three significant digits and no sign.
func percent(x float64) string {
	return steps(100*x, step{10, 1}, step{1, 2}, step{0.1, 3}, step{0, 4})
}

func ratio(x float64) string { return steps(x, step{10, 0}, step{0, 2}) }

func nanos(x float64) string { return steps(x, step{100, grouping}, step{0, 1}) }

func seconds(x float64) string { return fixed(x, 1) }

// between formats a number and the ends of its interval.
func between(format func(float64) string, x, low, high float64) string {
	return fmt.Sprintf("%s [%s, %s]", format(x), format(low), format(high))
}
