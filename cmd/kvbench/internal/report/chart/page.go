package chart

import (
	"bytes"
	_ "embed" // the parts of the page
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
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
// element of their own, the results themselves.
type Data struct {
	Title      string         `json:"title"`
	Labels     []string       `json:"labels"` // of the cells
	Common     []string       `json:"common"` // settings that all have
	Machines   []string       `json:"machines"`
	Grids      []*report.Grid `json:"grids"`
	Charts     []Chart        `json:"charts"`
	Notes      []string       `json:"notes"`
	Warnings   []string       `json:"warnings"`
	Identities string         `json:"identities"`
	CSV        string         `json:"csv"`
}

// NewData prepares a set of results.
func NewData(title string, set []*cell.Result) (*Data, error) {
	l := report.NewLabels(set)
	d := &Data{
		Title: title, Common: l.Common, Grids: report.Grids(set),
		Machines: report.Machines(set), Notes: report.Notes(set), Warnings: report.Warnings(set),
		Identities: report.IdentitiesLine(set),
	}
	for i := range set {
		d.Labels = append(d.Labels, l.Text(i))
	}
	d.Charts = All(set, d.Labels)
	var csv bytes.Buffer
	if err := report.CellsCSV(&csv, set); err != nil {
		return nil, err
	}
	d.CSV = csv.String()
	return d, nil
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
