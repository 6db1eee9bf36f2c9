// Package tidy is the form of a result that experiments share: what was measured, on which machine, and a row for each
// number. Rows are of cells, which are some settings with their values. Reports, CSV and JSON need nothing else.
package tidy

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Schema names the form of a Result in JSON.
const Schema = "kvbench.rows/v1"

// A Result is all that an experiment found out.
type Result struct {
	Schema      string              `json:"schema"`
	Experiment  string              `json:"experiment"` // its name
	About       string              `json:"about"`      // what was measured, in a line
	Environment environ.Environment `json:"environment"`
	Settings    any                 `json:"settings"` // of all cells
	Rows        []Row               `json:"rows"`
	Timelines   []Timeline          `json:"timelines,omitempty"`
	Notes       []string            `json:"notes,omitempty"` // what else to know of this run
	WallSeconds float64             `json:"wall_seconds"`
}

// A Cell is what a row is about: settings in which cells differ, with their values.
type Cell map[string]string

// A Row is one number.
type Row struct {
	Cell       Cell    `json:"cell"`
	Metric     string  `json:"metric"` // unique in a cell
	Repetition int     `json:"repetition"`
	Value      float64 `json:"value"`
	Unit       string  `json:"unit"`
}

// A Timeline is what happened in a cell over time.
type Timeline struct {
	Cell Cell `json:"cell"`
	*measure.Timeline
}

// New returns a result without rows.
func New(experiment, about string, settings any, env environ.Environment) *Result {
	return &Result{Schema: Schema, Experiment: experiment, About: about, Settings: settings, Environment: env}
}

// Of returns a cell of names of settings and their values, in turns.
func Of(settings ...any) Cell {
	c := Cell{}
	for i := 0; i < len(settings); i += 2 {
		c[fmt.Sprint(settings[i])] = fmt.Sprint(settings[i+1])
	}
	return c
}

// Add adds what was measured of a cell, a value for each repetition.
func (r *Result) Add(of Cell, metric, unit string, values ...float64) {
	for i, x := range values {
		r.Rows = append(r.Rows, Row{Cell: of, Metric: metric, Repetition: i, Value: x, Unit: unit})
	}
}

// Append adds one more repetition.
func (r *Result) Append(of Cell, metric, unit string, value float64) {
	r.Rows = append(r.Rows, Row{of, metric, len(r.Values(of, metric)), value, unit})
}

// Values returns what was measured of a cell, by repetition; nil if nothing was.
func (r *Result) Values(of Cell, metric string) (values []float64) {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Metric == metric && maps.Equal(row.Cell, of) {
			values = append(values, row.Value)
		}
	}
	return values
}

// Cells returns the cells with just these settings, in the order of their first rows.
func (r *Result) Cells(settings ...string) (cells []Cell) {
	slices.Sort(settings)
	for _, row := range r.Rows {
		if slices.Equal(slices.Sorted(maps.Keys(row.Cell)), settings) && !slices.ContainsFunc(cells, row.Cell.is) {
			cells = append(cells, row.Cell)
		}
	}
	return cells
}

func (c Cell) is(d Cell) bool { return maps.Equal(c, d) }

// With returns the cell with other values of some settings.
func (c Cell) With(settings ...any) Cell {
	d := maps.Clone(c)
	maps.Copy(d, Of(settings...))
	return d
}

// Each returns the values of a setting, in the order of their first rows.
func (r *Result) Each(setting string) (values []string) {
	for _, row := range r.Rows {
		if x, ok := row.Cell[setting]; ok && !slices.Contains(values, x) {
			values = append(values, x)
		}
	}
	return values
}

// WriteCSV writes a line for each number, with a column for each setting.
func (r *Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	all := Cell{}
	for _, row := range r.Rows {
		maps.Copy(all, row.Cell)
	}
	names := slices.Sorted(maps.Keys(all))
	_ = out.Write(append(slices.Clone(names), "metric", "repetition", "value", "unit")) // Flush has the first error
	for _, row := range r.Rows {
		var line []string
		for _, name := range names {
			line = append(line, row.Cell[name])
		}
		_ = out.Write(append(line, row.Metric, strconv.Itoa(row.Repetition),
			strconv.FormatFloat(row.Value, 'g', -1, 64), row.Unit))
	}
	out.Flush()
	return out.Error()
}
