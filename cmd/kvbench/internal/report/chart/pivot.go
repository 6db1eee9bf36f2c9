package chart

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
)

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
