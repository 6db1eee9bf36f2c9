package report

import (
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

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

// word is an item of text.
func word(text string) Item { return Item{Text: text} }

// number is an item of a number; NaN is not known.
func number(x float64, text string) Item {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return word(absentCell)
	}
	return Item{Text: text, Sort: &x}
}

// writer returns the grid as a table of go-pretty.
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
