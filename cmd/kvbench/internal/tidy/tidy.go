// Package tidy is the form of a result that experiments share: what was measured, on which machine, and a row for each
// number. Rows are of cells, which are some settings with their values. Reports, CSV and JSON need nothing else.
package tidy

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Schema names the form of all results in JSON. It changes when a field changes its meaning or goes away.
const Schema = "kvbench.rows/v2"

// A Result is all that an experiment found out.
type Result struct {
	Schema      string              `json:"schema"`
	Experiment  string              `json:"experiment"` // its name
	About       string              `json:"about"`      // what was measured, in a line
	Environment environ.Environment `json:"environment"`
	Settings    any                 `json:"settings"` // of all cells
	Rows        []Row               `json:"rows"`
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
	Exact      bool    `json:"exact,omitempty"`  // a count, which the same settings give again
	Better     string  `json:"better,omitempty"` // lower or higher, if one is
}

// New returns a result without rows.
func New(experiment, about string, settings any, env environ.Environment) *Result {
	return &Result{Schema: Schema, Experiment: experiment, About: about, Settings: settings, Environment: env}
}

// Measure runs an experiment, and returns its result. What run puts into the directory is gone then; the directory is
// made in parent, the system's if that is empty. If only its removal fails, the result comes with the error.
func Measure(experiment, about string, settings any, argv []string, parent string,
	run func(r *Result, dir string) error) (*Result, error) {
	started := time.Now()
	dir, remove, err := bench.TempDir(parent, experiment)
	if err != nil {
		return nil, err
	}
	r := New(experiment, about, settings, environ.Capture(argv, filepath.Dir(dir)))
	if err := run(r, dir); err != nil {
		return nil, errors.Join(err, remove())
	}
	r.WallSeconds = time.Since(started).Seconds()
	return r, remove()
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

// AddRate adds the part of n trials that passed, between the ends of its 95 % Wilson interval, which are metrics that
// end in -low and -high.
func (r *Result) AddRate(of Cell, metric string, passed, n int) {
	rate := float64(passed) / float64(n)
	low, high := measure.Wilson(rate, float64(n))
	r.Add(of, metric, "", rate)
	r.Add(of, metric+"-low", "", low)
	r.Add(of, metric+"-high", "", high)
}

// Append adds one more repetition.
func (r *Result) Append(of Cell, metric, unit string, value float64) {
	r.Rows = append(r.Rows, Row{Cell: of, Metric: metric, Repetition: len(r.Values(of, metric)), Value: value,
		Unit: unit})
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
	all := Cell{}
	for _, row := range r.Rows {
		maps.Copy(all, row.Cell)
	}
	names := slices.Sorted(maps.Keys(all))
	return CSV(w, append(slices.Clone(names), "metric", "repetition", "value", "unit"), func(line func(...any)) {
		for _, row := range r.Rows {
			var fields []any
			for _, name := range names {
				fields = append(fields, row.Cell[name])
			}
			line(append(fields, row.Metric, row.Repetition, row.Value, row.Unit)...)
		}
	})
}

// CSV writes a header and the lines that f passes to line. Numbers have all digits.
func CSV(w io.Writer, header []string, f func(line func(fields ...any))) error {
	out := csv.NewWriter(w)
	_ = out.Write(header) // Flush has the first error
	f(func(fields ...any) {
		texts := make([]string, len(fields))
		for i, field := range fields {
			if x, ok := field.(float64); ok {
				texts[i] = strconv.FormatFloat(x, 'g', -1, 64)
			} else {
				texts[i] = fmt.Sprint(field)
			}
		}
		_ = out.Write(texts)
	})
	out.Flush()
	return out.Error()
}

// A Setting is a setting of a cell with its value, as it is and as reports show it.
type Setting struct{ Name, Text, Shown string }

// A Metric is a number of a cell that can be held against that of another.
type Metric struct {
	Kind    string    // existing, absent, or store; empty if the metric has no kind
	Level   string    // of the tree; empty: all
	Unit    string    // such as ns/op
	Value   float64   // of samples, the median
	Exact   bool      // a count, which the same settings give again
	Better  string    // lower, higher, or empty
	Samples []float64 // by repetition, if not exact
}

// Rows returns metrics of one cell as rows, and Metrics is its opposite.
func Rows(metrics []Metric) []Row {
	rows := []Row{}
	for _, m := range metrics {
		of := Cell{}
		if m.Level != "" {
			of["level"] = m.Level
		}
		values := m.Samples
		if len(values) == 0 {
			values = []float64{m.Value}
		}
		for i, x := range values {
			rows = append(rows, Row{of, m.Name(), i, x, m.Unit, m.Exact, m.Better})
		}
	}
	return rows
}

// Metrics returns rows of one cell as metrics. One is exact if all of its rows are, and have the same value.
func Metrics(rows []Row) (metrics []Metric) {
	at := map[[2]string]int{}
	for _, row := range rows {
		key := [2]string{row.Cell["level"], row.Metric}
		i, ok := at[key]
		if !ok {
			kind, unit := SplitMetric(row.Metric)
			i, at[key] = len(metrics), len(metrics)
			metrics = append(metrics, Metric{kind, key[0], unit, 0, row.Exact, row.Better, nil})
		}
		m := &metrics[i]
		m.Samples = append(m.Samples, row.Value)
		m.Exact = m.Exact && row.Exact && row.Value == m.Samples[0]
	}
	for i := range metrics {
		m := &metrics[i]
		if m.Value = measure.Median(m.Samples); m.Exact {
			m.Samples = nil
		}
	}
	return metrics
}

// SplitMetric returns the kind and the unit that a metric's name has; one word is a unit.
func SplitMetric(name string) (kind, unit string) {
	kind, unit, ok := strings.Cut(name, " ")
	if !ok {
		return "", name
	}
	return kind, unit
}

// MetricName is the opposite of SplitMetric.
func MetricName(kind, unit string) string { return strings.TrimSpace(kind + " " + unit) }

// Name returns the metric's name, unique in a cell.
func (m *Metric) Name() string { return MetricName(m.Kind, m.Unit) }

// A Measured is a cell with its numbers, whatever has measured it: what is compared, and put into tables.
type Measured struct {
	Name        string
	Settings    []Setting
	Metrics     []Metric
	Environment *environ.Environment
	Units       map[string]string // of rows by metric; nil: Metric.Unit is the unit
	Run         map[string]string // of rows, settings that all cells of the result share; see Result.Shared
}

// Metric returns a metric by kind and unit, nil if the cell has none.
func (m *Measured) Metric(kind, unit string) *Metric { return Find(m.Metrics, "", kind, unit) }

// Find returns the metric of a level, or of all if that is empty, nil if there is none.
func Find(metrics []Metric, level, kind, unit string) *Metric {
	at := slices.IndexFunc(metrics, func(m Metric) bool { return m.Level == level && m.Kind == kind && m.Unit == unit })
	if at < 0 {
		return nil
	}
	return &metrics[at]
}

// Setting returns a setting, one without a value if the cell does not have it.
func (m *Measured) Setting(name string) Setting {
	if at := slices.IndexFunc(m.Settings, func(s Setting) bool { return s.Name == name }); at >= 0 {
		return m.Settings[at]
	}
	return Setting{Name: name}
}

// Differs lists the settings that the runs of two cells do not share, with both values; empty if there is none.
func (m *Measured) Differs(o *Measured) string {
	var out []string
	all := map[string]string{}
	maps.Copy(all, m.Run)
	maps.Copy(all, o.Run)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a, b := m.Run[name], o.Run[name]; a != b {
			out = append(out, fmt.Sprintf("%s %s and %s", name, cmp.Or(a, "none"), cmp.Or(b, "none")))
		}
	}
	return strings.Join(out, ", ")
}

// Text returns every setting as name=value: cells of the same text are the same experiment.
func (m *Measured) Text() string {
	var out []string
	for _, s := range m.Settings {
		out = append(out, s.Name+"="+s.Text)
	}
	return strings.Join(out, " ")
}

// Measured returns the cells of the result, in the order of their first rows. The experiment is a setting of each.
func (r *Result) Measured() (all []*Measured) {
	cells, rows, run := map[string]*Measured{}, map[*Measured][]Row{}, r.Shared()
	for _, row := range r.Rows {
		m := &Measured{Settings: []Setting{{"experiment", r.Experiment, r.Experiment}}, Environment: &r.Environment,
			Units: map[string]string{}, Run: run}
		for _, name := range slices.Sorted(maps.Keys(row.Cell)) {
			m.Settings = append(m.Settings, Setting{name, row.Cell[name], row.Cell[name]})
		}
		m.Name = m.Text()
		if known, ok := cells[m.Name]; ok {
			m = known
		} else {
			cells[m.Name], all = m, append(all, m)
		}
		rows[m] = append(rows[m], row)
		m.Units[row.Metric] = row.Unit
	}
	for _, m := range all {
		m.Metrics = Metrics(rows[m])
	}
	return all
}

// Shared returns the settings of the result by name, those in a structure after its name and a dot. Lists are left out:
// they say which cells there are.
func (r *Result) Shared() map[string]string {
	flat := map[string]string{}
	var walk func(name string, x any)
	walk = func(name string, x any) {
		switch x := x.(type) {
		case map[string]any:
			for key, value := range x {
				walk(strings.TrimPrefix(name+"."+key, "."), value)
			}
		case []any, nil:
		default:
			flat[name] = fmt.Sprint(x)
		}
	}
	if data, err := json.Marshal(r.Settings); err == nil {
		var settings any
		in := json.NewDecoder(bytes.NewReader(data))
		in.UseNumber()
		if in.Decode(&settings) == nil {
			walk("", settings)
		}
	}
	return flat
}
