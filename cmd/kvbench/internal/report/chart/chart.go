// Package chart says what is drawn of a set of results, and writes a page whose program draws it with a chart
// library. The page saves each chart as an SVG file.
//
// Every number of a chart is a metric, a counter or a sample of the results.
package chart

import "github.com/siftkv/siftkv/cmd/kvbench/internal/cell"

// A Form is a way to draw.
type Form string

// Forms.
const (
	Bars  Form = "bars"  // a bar per category, of stacked series; a dot where Y is logarithmic, as that has no zero
	Lines Form = "lines" // points in the plane; series with Line are joined

	// Times has points joined by lines over the marks of each series, which lie in
	// lanes of their own.
	Times Form = "times"
	// Ratios is a table of what each category has of each series, beside the
	// category that is the baseline. Less is better.
	Ratios Form = "ratios"
)

// A Chart is one picture.
type Chart struct {
	ID         string   `json:"id"` // a file name
	Title      string   `json:"title"`
	Note       string   `json:"note"` // how to read it
	Form       Form     `json:"form"`
	X          Axis     `json:"x"`
	Y          Axis     `json:"y"`
	Categories []string `json:"categories"` // of Bars and Ratios
	Stacked    bool     `json:"stacked"`    // else bars stand side by side
	Baseline   int      `json:"baseline"`   // of Ratios: the category
	Series     []Series `json:"series"`
}

// An Axis has a name.
type Axis struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"` // empty: numbers are shown as they are
	Log  bool   `json:"log"`
}

// A Unit says how numbers are shown.
type Unit string

// Units.
const (
	Nanoseconds Unit = "ns"
	Seconds     Unit = "s"

	// Percentile is a number of things of which one is above the percentile: 100 is
	// the 99th. Its logarithm spreads the tail.
	Percentile Unit = "percentile"
)

// A Series has one value per category, or points.
type Series struct {
	Name    string    `json:"name"`
	Values  []float64 `json:"values,omitempty"` // a negative one is not known
	Points  []Point   `json:"points,omitempty"`
	Marks   []Mark    `json:"marks,omitempty"` // of Times
	Line    bool      `json:"line"`            // points are joined
	Dashed  bool      `json:"dashed"`          // theory, or a bound
	Like    string    `json:"like"`            // name of the series whose colour it has; empty: one of its own
	Neutral bool      `json:"neutral"`         // grey: it belongs to no series
}

// A Mark is something that went on from one moment to another.
type Mark struct {
	Lane  string  `json:"lane"`
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Label string  `json:"label"`
}

// A Point lies in the plane, with an interval of Y if Low < High.
type Point struct {
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Label string  `json:"label"`
}

// All returns the charts of a set, whose cells are called by the labels.
func All(set []*cell.Result, labels []string) []Chart {
	var charts []Chart
	for _, c := range []Chart{
		blocks(set, labels, "absent"), blocks(set, labels, "existing"),
		rates(set, labels), pareto(set, labels),
		spectrum(set, labels, "absent"), spectrum(set, labels, "existing"),
		funnel(set, labels, "absent"), funnel(set, labels, "existing"),
		times(set, labels), writes(set, labels), ratios(set, labels),
	} {
		if len(c.Series) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}
