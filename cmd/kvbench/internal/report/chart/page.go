package chart

import (
	"bytes"
	"cmp"
	_ "embed" // the parts of the page
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// The chart library is Apache ECharts 6.1.0, under the Apache License 2.0, as npm has
// it: echarts/SHA256SUMS pins it, echarts/fetch.sh fetches it, and its licence is at the
// top of the file and goes into every page.
var (
	//go:embed echarts/echarts.min.js
	library string
	//go:embed echarts/NOTICE
	notice string
	//go:embed page.html
	skeleton string
	//go:embed page.css
	style string
	//go:embed js/base.js
	base string
	//go:embed js/charts.js
	charts string
	//go:embed js/tables.js
	tables string
	//go:embed js/compare.js
	compare string
	//go:embed js/page.js
	whole string
)

// program is the page's program: its parts share one scope.
var program = strings.Join([]string{base, charts, tables, compare, whole}, "\n")

// Data is what the page's program draws. It is in the page as JSON, and so are, in an
// element of their own, the results themselves, if they are cells.
type Data struct {
	Title      string         `json:"title"`
	Labels     []string       `json:"labels"` // of the cells
	Common     []string       `json:"common"` // settings that all have
	About      []string       `json:"about"`  // of other results, what was measured
	Machines   []string       `json:"machines"`
	Grids      []*report.Grid `json:"grids"`
	Charts     []Chart        `json:"charts"`
	Notes      []string       `json:"notes"`
	Warnings   []string       `json:"warnings"`
	Identities string         `json:"identities"`
	CSV        string         `json:"csv"`
}

// NewData prepares a set of results.
func NewData(title string, set *results.Set) (*Data, error) {
	d := &Data{Title: title}
	if cells := set.Cells; len(cells) > 0 || len(set.Rows) == 0 {
		l := report.NewLabels(cell.Measured(cells))
		d = &Data{
			Title: title, Common: l.Common, Grids: report.Grids(cells),
			Machines: report.Machines(cells), Notes: report.Notes(cells), Warnings: report.Warnings(cells),
			Identities: report.IdentitiesLine(cells),
		}
		for i := range cells {
			d.Labels = append(d.Labels, l.Text(i))
		}
		d.Charts = All(cells, d.Labels)
		var csv bytes.Buffer
		if err := report.CellsCSV(&csv, cells); err != nil {
			return nil, err
		}
		d.CSV = csv.String()
	}
	for _, r := range set.Rows {
		d.add(r)
	}
	if len(set.Rows) == 1 && len(set.Cells) == 0 { // several have no columns in common
		var csv bytes.Buffer
		if err := set.Rows[0].WriteCSV(&csv); err != nil {
			return nil, err
		}
		d.CSV = csv.String()
	}
	return d, nil
}

// add adds a result that is rows, with its tables.
func (d *Data) add(r *tidy.Result) {
	d.Machines, d.Grids = append(d.Machines, r.Environment.String()), append(d.Grids, report.TidyGrids(r)...)
	d.About, d.Notes = append(d.About, r.About), append(d.Notes, report.TidyNotes(r)...)
	d.Warnings = append(d.Warnings, r.Environment.Warnings...)
}

// WritePage writes a page, with the results that it is about, if they are cells.
func WritePage(w io.Writer, d *Data, set []*cell.Result) error {
	// Marshal writes <, > and & as escapes, so that no text can end the element.
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	cells, err := json.Marshal(append([]*cell.Result{}, set...)) // [] of none
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = strings.NewReplacer(
		"{{title}}", html.EscapeString(d.Title),
		"{{style}}", style,
		"{{notice}}", html.EscapeString(strings.Join(strings.Fields(notice), " ")),
		"{{library}}", library,
		"{{cells}}", string(cells),
		"{{data}}", string(data),
		"{{program}}", program,
	).WriteString(w, skeleton)
	return err
}

// logFrom is the quotient of the ends of an axis of sizes from which it is logarithmic.
const logFrom = 32

// Pivot draws a pivot table: over columns that are numbers, a line for each row and
// metric; other columns as bars. With x, a table of one metric with the same rows and
// columns, lines are drawn over that metric.
func Pivot(t, x *results.Table, id, title string) Chart {
	c := Chart{ID: id, Title: title, Form: Bars, Y: Axis{Name: strings.Join(t.Metrics, ", ")}}
	switch {
	case x != nil:
		c.lines(t, x.Metrics[0], func(row, column int) float64 {
			if p := x.Places[row][column][0]; p.Cells > 0 {
				return p.Median
			}
			return math.NaN()
		})
	case numbers(t.ColumnKeys) != nil:
		at, name := numbers(t.ColumnKeys), t.Columns[0]
		if t.ColumnKeys[0].Size() {
			name += ", MiB"
			for i := range at {
				at[i] /= 1 << 20
			}
		}
		c.lines(t, name, func(_, column int) float64 { return at[column] })
		c.X.Log = slices.Min(at) > 0 && slices.Max(at) > logFrom*slices.Min(at)
	default:
		c.bars(t)
	}
	return c
}

// numbers returns the numbers that keys are, nil if some are not, or if there is one
// only.
func numbers(keys []results.Key) []float64 {
	var all []float64
	for _, k := range keys {
		x, ok := k.Number()
		if !ok {
			return nil
		}
		all = append(all, x)
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// lines makes a line for each row and metric, over what x says of a place. What is not
// known has no point.
func (c *Chart) lines(t *results.Table, name string, x func(row, column int) float64) {
	c.Form, c.X = Lines, Axis{Name: name}
	for row, key := range t.RowKeys {
		for metric, unit := range t.Metrics {
			s := Series{Name: key.String(), Line: true}
			if len(t.Metrics) > 1 {
				s.Name = strings.TrimSpace(s.Name + " " + unit)
			}
			for column, places := range t.Places[row] {
				if at, p := x(row, column), places[metric]; p.Cells > 0 && !math.IsNaN(at) {
					s.Points = append(s.Points,
						Point{X: at, Y: p.Median, Low: p.Low, High: p.High,
							Label: s.Name + ", " + t.ColumnKeys[column].String()})
				}
			}
			slices.SortStableFunc(s.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
			if len(s.Points) > 0 {
				c.Series = append(c.Series, s)
			}
		}
	}
}

// bars makes a category of each row, and a bar of each column and metric.
func (c *Chart) bars(t *results.Table) {
	for _, key := range t.RowKeys {
		c.Categories = append(c.Categories, key.String())
	}
	for column := range t.ColumnKeys {
		for metric := range t.Metrics {
			s := Series{Name: t.ColumnName(column, metric)}
			for row := range t.RowKeys {
				s.Values = append(s.Values, t.Places[row][column][metric].Median)
			}
			c.Series = append(c.Series, s)
		}
	}
}

// ratios holds every cell against the first that is a store.
func ratios(set []*cell.Result, labels []string) Chart {
	c := describe("ratios", "")
	c.Categories, c.Baseline = labels, -1
	for i, r := range set {
		if c.Baseline < 0 && r.Metric(cell.StoreKind, "files") != nil {
			c.Baseline = i
		}
	}
	if c.Baseline < 0 || len(set) < 2 {
		return Chart{}
	}
	for _, column := range described.Ratios {
		s, known := Series{Name: column.Name}, false
		for _, r := range set {
			value := -1.0
			if m := r.Metric(column.Kind, column.Unit); m != nil {
				value, known = m.Value, true
			}
			s.Values = append(s.Values, value)
		}
		if known {
			c.Series = append(c.Series, s)
		}
	}
	return c
}
