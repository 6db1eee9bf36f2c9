package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
)

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
	out := csv.NewWriter(w)
	header := append(append([]string{}, t.Rows...), t.Columns...)
	_ = out.Write(append(header, "metric", "cells", "median", "least", "greatest")) // Flush reports the first error
	exact := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for row, line := range t.Places {
		for column, places := range line {
			for metric, p := range places {
				if p.Cells > 0 {
					fields := append(append([]string{}, t.RowKeys[row].Shown...), t.ColumnKeys[column].Shown...)
					_ = out.Write(append(fields, t.Metrics[metric], strconv.Itoa(p.Cells), exact(p.Median),
						exact(p.Low), exact(p.High)))
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// placeItem shows a place.
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
	_, unit, _ := strings.Cut(metric, " ")
	for _, columns := range [][]metricColumn{phaseColumns, storeColumns} {
		for _, c := range columns {
			if c.unit == unit {
				return c.format
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
