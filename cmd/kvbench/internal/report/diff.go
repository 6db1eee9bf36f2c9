package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Diff writes what changed between two sets, and with all what did not.
func Diff(w io.Writer, d *results.Diff, all bool) error {
	return write(w, func(out *Page) {
		out.Printf("%s in both sets", times(len(d.Cells), "cell"))
		if n := len(d.OnlyA); n > 0 {
			out.Printf(", %s only in the first", count(n))
		}
		if n := len(d.OnlyB); n > 0 {
			out.Printf(", %s only in the second", count(n))
		}
		out.Printf("\ncounters: %s equal, %s changed\n", count(d.Equal), count(d.Changed))
		if g := diffGrid(d, all); len(g.Rows) > 0 {
			out.Grid(g)
		} else {
			out.Printf("\nNothing differs.\n")
		}
		for i := range d.Violations {
			out.Printf("\nFAIL %s", &d.Violations[i])
		}
		if len(d.Violations) > 0 {
			out.Printf("\n")
		}
		out.List("Notes",
			"Counters are compared exactly. Times: p is that of a two-sided Mann-Whitney U test; the change and its "+
				"95 % interval are the Hodges-Lehmann estimate. ~ means that the test cannot tell the difference "+
				"from chance at 5 %. Numbers of one repetition, such as percentiles, are not tested.",
			"With many comparisons one in twenty shows a difference where there is none.")
		out.List("Warnings", d.Warnings...)
	})
}

// diffGrid lists the metrics that changed, or all. Those of several repetitions are always there.
func diffGrid(d *results.Diff, all bool) *Grid {
	var set []*tidy.Measured
	for _, p := range d.Cells {
		set = append(set, p.A)
	}
	l := NewLabels(set)
	g := newGrid("What changed", 2, "keys", "metric", "first", "second", "change", "95\u00a0% interval", "p", "verdict")
	g.Columns[7].Text = true
	g.Columns = append(settingColumns(l), g.Columns...)
	for i, p := range d.Cells {
		for _, c := range p.Metrics {
			if c.Rank == nil && c.A == c.B && !all {
				continue
			}
			g.Rows = append(g.Rows, append(slices.Clone(l.Values(i)), diffItems(&c)...))
		}
	}
	return g
}

func diffItems(c *results.Comparison) []Item {
	interval, p, verdict := "", "", string(c.Verdict)
	if c.Rank != nil {
		interval = fmt.Sprintf("%+.1f %% to %+.1f %%", 100*(c.Rank.Low-1), 100*(c.Rank.High-1))
		p = strings.Replace(fmt.Sprintf("%.3f (n=%d+%d)", c.Rank.P, c.N[0], c.N[1]), "0.000", "<0.001", 1)
	}
	if c.Verdict == results.Unclear {
		verdict = "~"
	}
	return []Item{
		word(c.Kind), word(c.Unit), number(c.A, quantity(c.A)), number(c.B, quantity(c.B)),
		number(c.Delta, deltaText(c.Delta)), word(interval), word(p), word(verdict),
	}
}

func deltaText(x float64) string {
	switch {
	case x == 0:
		return "0"
	case math.IsInf(x, 0):
		return "from 0"
	default:
		return fmt.Sprintf("%+.2f %%", 100*x)
	}
}

// quantity formats a number of unknown size.
func quantity(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return count(int64(x))
	}
	if math.Abs(x) >= 1000 {
		return whole(x)
	}
	return fmt.Sprintf("%.4g", x)
}

// PivotGrid shows a pivot table. Where several cells share a place it has their median
// with the least and the greatest.
func PivotGrid(t *results.Table) *Grid {
	g := &Grid{Title: t.Title()}
	for _, name := range t.Rows {
		g.Columns = append(g.Columns, Column{Name: name, Help: "setting", Text: true})
	}
	for column := range t.ColumnKeys {
		for metric := range t.Metrics {
			g.Columns = append(g.Columns, Column{Name: t.ColumnName(column, metric), Help: t.Metrics[metric]})
		}
	}
	for row, key := range t.RowKeys {
		var items []Item
		for _, text := range key.Shown {
			items = append(items, word(text))
		}
		for _, places := range t.Places[row] {
			for metric, p := range places {
				items = append(items, placeItem(t.Metrics[metric], p))
			}
		}
		g.Rows = append(g.Rows, items)
	}
	return g
}

// PivotCSV writes a pivot table as a line per row, column and metric, with all digits.
func PivotCSV(w io.Writer, t *results.Table) error {
	header := append(slices.Concat(t.Rows, t.Columns), "metric", "cells", "median", "least", "greatest")
	return tidy.CSV(w, header, func(line func(...any)) {
		for row, places := range t.Places {
			for column, list := range places {
				for metric, p := range list {
					if p.Cells == 0 {
						continue
					}
					var fields []any
					for _, text := range slices.Concat(t.RowKeys[row].Shown, t.ColumnKeys[column].Shown) {
						fields = append(fields, text)
					}
					line(append(fields, t.Metrics[metric], p.Cells, p.Median, p.Low, p.High)...)
				}
			}
		}
	})
}

func placeItem(metric string, p results.Place) Item {
	if p.Cells == 0 {
		return word(absentCell)
	}
	format := metricFormat(metric)
	if p.Low < p.High {
		return number(p.Median, between(format, p.Median, p.Low, p.High))
	}
	return number(p.Median, format(p.Median))
}

// metricFormat returns how the numbers of a metric are shown, as in the other tables.
func metricFormat(metric string) func(float64) string {
	_, unit := tidy.SplitMetric(metric)
	for _, columns := range [][]metricColumn{cellTables.Lookups, cellTables.Stores} {
		for _, c := range columns {
			if c.Unit == unit {
				return formats[c.Format]
			}
		}
	}
	switch {
	case unit == "fpr":
		return func(x float64) string { return percent(x) + " %" }
	case strings.HasSuffix(unit, "-ns"):
		return nanos
	}
	return perOne
}
