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
func (g *Grid) writer() table.Writer {
	header, left := table.Row{}, 0
	for i, c := range g.Columns {
		header = append(header, strings.ReplaceAll(c.Name, " ", "\n"))
		if c.Text && left == i {
			left++
		}
	}
	t := newTable(left, header)
	for _, items := range g.Rows {
		row := table.Row{}
		for _, item := range items {
			row = append(row, item.Text)
		}
		t.AppendRow(row)
	}
	return t
}

// Text returns the grid for a terminal.
func (g *Grid) Text() string { return g.Title + "\n\n" + g.writer().Render() + "\n" }

// Markdown returns the grid as a heading and a table.
func (g *Grid) Markdown() string {
	t := table.NewWriter()
	header := table.Row{}
	for _, c := range g.Columns {
		header = append(header, c.Name)
	}
	t.AppendHeader(header)
	for _, items := range g.Rows {
		row := table.Row{}
		for _, item := range items {
			row = append(row, item.Text)
		}
		t.AppendRow(row)
	}
	var columns []table.ColumnConfig
	for i, c := range g.Columns {
		if !c.Text {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight})
		}
	}
	t.SetColumnConfigs(columns)
	return "## " + g.Title + "\n\n" + t.RenderMarkdown() + "\n"
}
