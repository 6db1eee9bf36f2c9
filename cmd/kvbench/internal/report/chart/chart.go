// Package chart says what is drawn of a set of results, and writes a page whose program draws it with a chart
// library. The page saves each chart as an SVG file.
//
// Every number of a chart is a metric, a counter or a sample of the results.
package chart

import (
	"cmp"
	_ "embed" // the charts
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/filterpolicy"
)

// A Form is a way to draw.
type Form string

// Forms.
const (
	Bars  Form = "bars"  // a bar per category, of stacked series; a dot where Y is logarithmic, as that has no zero
	Lines Form = "lines" // points in the plane; series with Line are joined

	// Ratios is a table of what each category has of each series, beside the
	// category that is the baseline. Less is better.
	Ratios Form = "ratios"
)

// A Chart is one picture.
type Chart struct {
	ID         string   `json:"id"` // a file name
	Title      string   `json:"title"`
	Headline   string   `json:"headline"` // what it tells first, in a sentence; empty: none
	Note       string   `json:"note"`     // how to read it
	Form       Form     `json:"form"`
	X          Axis     `json:"x"`
	Y          Axis     `json:"y"`
	Categories []string `json:"categories"` // of Bars and Ratios
	Stacked    bool     `json:"stacked"`    // else bars stand side by side
	Baseline   int      `json:"baseline"`   // of Ratios: the category
	Series     []Series `json:"series"`
}

// An Axis has a name. Its unit is ns; percentile, a number of things of which one is above the percentile (100 is the
// 99th), so that its logarithm spreads the tail; or empty: numbers are shown as they are.
type Axis struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Log  bool   `json:"log"`
}

// A Series has one value per category, or points.
type Series struct {
	Name    string    `json:"name"`
	Values  []float64 `json:"values,omitempty"` // a negative one is not known
	Points  []Point   `json:"points,omitempty"`
	Line    bool      `json:"line"`    // points are joined
	Dashed  bool      `json:"dashed"`  // theory, or a bound
	Like    string    `json:"like"`    // name of the series whose colour it has; empty: one of its own
	Neutral bool      `json:"neutral"` // grey: it belongs to no series
}

// A Point lies in the plane, with an interval of Y if Low < High.
type Point struct {
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Label string  `json:"label"`
}

//go:embed charts.yaml
var chartsFile []byte

// described is what the file says of the charts of a set.
var described = bench.Table[struct {
	Charts []Chart
	Funnel []struct {
		Name  string
		Units []string
	}
	Ratios []struct{ Kind, Unit, Name string }
}]("chart/charts.yaml", chartsFile)

// describe returns a chart of the file, without series.
func describe(id string, kind engine.Kind) Chart {
	c := described.Charts[slices.IndexFunc(described.Charts, func(c Chart) bool { return c.ID == id })]
	for _, text := range []*string{&c.ID, &c.Title} {
		*text = strings.ReplaceAll(*text, "KIND", string(kind))
	}
	return c
}

// All returns the charts of a set, whose cells are called by the labels.
func All(set []*cell.Result, labels []string) []Chart {
	var charts []Chart
	heads := headlines(set, labels)
	for _, c := range []Chart{
		blocks(set, labels, "absent"), blocks(set, labels, "existing"),
		rates(set, labels), pareto(set, labels),
		spectrum(set, labels, "absent"), spectrum(set, labels, "existing"),
		funnel(set, labels, "absent"), funnel(set, labels, "existing"),
		times(set, labels), ratios(set, labels),
	} {
		if len(c.Series) > 0 {
			c.Headline = heads[c.ID]
			charts = append(charts, c)
		}
	}
	return charts
}

// perLookup returns the sum of some metrics of lookups; what is not known is 0.
func perLookup(r *cell.Result, kind engine.Kind, units ...string) (sum float64) {
	for _, unit := range units {
		if m := r.Metric(string(kind), unit); m != nil {
			sum += m.Value
		}
	}
	return sum
}

// blocks stacks the blocks that a lookup reads, by level; or shows their sums on a logarithmic axis where bars of most
// cells would be too short to be seen.
func blocks(set []*cell.Result, labels []string, kind engine.Kind) Chart {
	c := describe("blocks-KIND", kind)
	c.Categories = labels
	whole := Series{Name: "all levels", Values: make([]float64, len(set))}
	var parts []Series
	any := false
	for i, r := range set {
		whole.Values[i] = perLookup(r, kind, "blocks/op")
		any = any || r.Metric(string(kind), "blocks/op") != nil
		for _, m := range r.Metrics {
			if m.Level == "" || m.Kind != string(kind) || m.Unit != "blocks/op" {
				continue
			}
			n, _ := strconv.Atoi(m.Level)
			for len(parts) <= n {
				parts = append(parts, Series{Name: fmt.Sprintf("L%d", len(parts)), Values: make([]float64, len(set))})
			}
			parts[n].Values[i], whole.Values[i] = m.Value, 0
		}
	}
	if !any {
		return Chart{}
	}
	for _, s := range append(parts, whole) {
		if slices.ContainsFunc(s.Values, func(x float64) bool { return x != 0 }) {
			c.Series = append(c.Series, s)
		}
	}
	if sums := c.sums(); spread(sums) > visible {
		c.Title, c.Stacked, c.Y.Log = "Blocks per lookup of an "+string(kind)+" key", false, true
		c.Series = []Series{{Name: "all levels", Values: sums}}
	}
	return c
}

// visible is how many times as long as the shortest bar the longest may be: beside it, the shortest has some pixels.
const visible = 20

func (c *Chart) sums() []float64 {
	sums := make([]float64, len(c.Categories))
	for _, s := range c.Series {
		for i, x := range s.Values {
			sums[i] += max(x, 0)
		}
	}
	return sums
}

// spread returns how many times as large as the smallest positive value the largest is.
func spread(values []float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, x := range values {
		if x > 0 {
			low, high = min(low, x), max(high, x)
		}
	}
	return high / low
}

// funnel shows how few of the files that a lookup considers it reads.
func funnel(set []*cell.Result, labels []string, kind engine.Kind) Chart {
	c := describe("funnel-KIND", kind)
	for _, s := range described.Funnel {
		c.Categories = append(c.Categories, s.Name)
	}
	var all []float64
	for i, r := range set {
		if r.Metric(string(kind), "files/op") == nil {
			continue
		}
		s := Series{Name: labels[i]}
		for _, step := range described.Funnel {
			s.Values = append(s.Values, perLookup(r, kind, step.Units...))
		}
		c.Series = append(c.Series, s)
		all = append(all, s.Values...)
	}
	c.Y.Log = spread(all) > visible
	return c
}

// times shows the median time of a lookup, of both kinds side by side.
func times(set []*cell.Result, labels []string) Chart {
	c := describe("times", "")
	c.Categories = labels
	for _, kind := range []engine.Kind{engine.Absent, engine.Existing} {
		s := Series{Name: string(kind)}
		for _, r := range set {
			s.Values = append(s.Values, r.Phase(kind).NsPerLookup)
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func family(r *cell.Result) string {
	name, _, _ := strings.Cut(r.Settings.Filter, ":")
	return r.Settings.Engine + " " + name
}

// add appends a point to the series of a name, which it makes if it is new.
func add(list []Series, name string, p Point) []Series {
	at := slices.IndexFunc(list, func(s Series) bool { return s.Name == name })
	if at < 0 {
		at, list = len(list), append(list, Series{Name: name})
	}
	list[at].Points = append(list[at].Points, p)
	return list
}

// rates sets false-positive rates against bits per key, with theory.
func rates(set []*cell.Result, labels []string) Chart {
	c := describe("fpr", "")
	families := map[string]int{} // keys per file
	for i, r := range set {
		f := r.Absent.FPR
		if f == nil || r.BitsPerKey == 0 || r.Settings.Filter == engine.OracleFilter {
			continue
		}
		p := Point{X: r.BitsPerKey, Y: f.Value, Low: f.Low, High: f.High, Label: labels[i]}
		if p.Y == 0 {
			p.Y, p.Low = f.High, f.High
		}
		c.Series = add(c.Series, family(r), p)
		if total := r.Shape.Total(); total.Files > 0 {
			name, _, _ := strings.Cut(r.Settings.Filter, ":")
			families[name] = int(total.Entries) / total.Files
		}
	}
	if len(c.Series) == 0 {
		return Chart{}
	}
	for _, f := range filterpolicy.Families() {
		if keys, ok := families[f]; ok {
			if s := theory(f, keys); len(s.Points) > 1 {
				like := slices.IndexFunc(c.Series, func(s Series) bool { return strings.HasSuffix(s.Name, " "+f) })
				s.Like = c.Series[like].Name
				c.Series = append(c.Series, s)
			}
		}
	}
	return c
}

// theory is the line of a family whose bits can be chosen.
func theory(family string, keys int) Series {
	s := Series{Name: family + " theory", Line: true, Dashed: true}
	base, err := filterpolicy.Parse(family + ":10")
	if err != nil {
		return s
	}
	const least, most = 4, 20
	for bits := float64(least); bits <= most; bits++ {
		p, ok := filterpolicy.WithBits(base, bits)
		if !ok {
			continue
		}
		e := filterpolicy.Expected(p, keys)
		if n := len(s.Points); n > 0 && s.Points[n-1].X >= e.BitsPerKey {
			continue // whole bits only
		}
		s.Points = append(s.Points, Point{X: e.BitsPerKey, Y: e.FPR, Label: p.String()})
	}
	return s
}

// pareto sets what a lookup of an absent key reads against the memory of filters.
func pareto(set []*cell.Result, labels []string) Chart {
	c := describe("pareto", "")
	var all []Point
	for i, r := range set {
		blocks, memory := r.Metric("absent", "blocks/op"), r.Metric(cell.StoreKind, "filter-bits/key")
		if blocks == nil || memory == nil || r.Settings.Filter == engine.OracleFilter { // its memory is not counted
			continue
		}
		p := Point{X: memory.Value, Y: blocks.Value, Label: labels[i]}
		if p.Y == 0 {
			p.Y = 1 / float64(r.Absent.Lookups)
		}
		all = append(all, p)
		c.Series = add(c.Series, family(r), p)
	}
	if len(all) > 0 {
		c.Series = append(c.Series, Series{Name: "front", Points: front(all), Line: true, Dashed: true, Neutral: true})
	}
	return c
}

// front returns the points that no other beats in X and in Y, by X.
func front(points []Point) []Point {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y))
	})
	var out []Point
	for _, p := range sorted {
		if len(out) == 0 || p.Y < out[len(out)-1].Y {
			out = append(out, p)
		}
	}
	return out
}

func spectrum(set []*cell.Result, labels []string, kind engine.Kind) Chart {
	c := describe("latency-KIND", kind)
	for i, r := range set {
		p := r.Phase(kind)
		s := Series{Name: labels[i], Line: true}
		for _, q := range p.Spectrum {
			in := 100 / (100 - q.Percentile)
			if q.Percentile >= 100 {
				in = float64(p.Latency.Lookups)
			}
			if n := len(s.Points); q.Nanos <= 0 || in > float64(p.Latency.Lookups) || n > 0 && s.Points[n-1].X >= in {
				continue
			}
			s.Points = append(s.Points, Point{X: in, Y: float64(q.Nanos)})
		}
		if len(s.Points) > 1 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}
