package results

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// A Query says what of a set is wanted. Settings of cells have the names of cell.Fields, metrics a kind and a unit,
// such as "absent blocks/op"; rows name their own.
type Query struct {
	Rows    []string // settings; cells that agree in them share a row
	Columns []string // settings; cells that agree in them share a column
	Metrics []string // side by side in each column
	Where   []string // name=value; a cell has one of the values given for each name
}

// A Table has a place for each row, column and metric that some cell has.
type Table struct {
	Query
	RowKeys    []Key       // by value; none comes first, oracle last
	ColumnKeys []Key       // likewise; one without values if Columns is empty
	Places     [][][]Place // by row, column and metric
	Cells      int         // of the set, that are in the table
	Warnings   []string
}

// A Place sums up a metric of the cells that are in one row and column.
type Place struct {
	Cells             int // 0: none has the metric
	Median, Low, High float64
}

// Pivot makes the table of a set. A name that is not known, and a metric that no cell
// has, match bench.ErrUsage.
func Pivot(set []*tidy.Measured, r Query) (*Table, error) {
	names := SettingNames(set)
	wanted, err := parseWhere(set, names, r.Where)
	err = cmp.Or(err, knownSettings("--rows", r.Rows, names), knownSettings("--columns", r.Columns, names))
	if err != nil {
		return nil, err
	}
	t := &Table{Query: r}
	type entry struct {
		row, column Key
		of          *tidy.Measured
	}
	var entries []entry
	for _, m := range set {
		if wanted.Match(m.Settings) {
			entries = append(entries, entry{keyOf(m, r.Rows), keyOf(m, r.Columns), m})
		}
	}
	if t.Cells = len(entries); t.Cells == 0 {
		return nil, bench.Usagef("--where %s: no cell is like that", strings.Join(r.Where, " --where "))
	}
	for _, e := range entries {
		t.RowKeys, t.ColumnKeys = append(t.RowKeys, e.row), append(t.ColumnKeys, e.column)
	}
	t.RowKeys, t.ColumnKeys = inOrder(t.RowKeys), inOrder(t.ColumnKeys)
	samples := map[[3]int][]float64{} // by row, column and metric
	for _, e := range entries {
		row, column := indexOf(t.RowKeys, e.row), indexOf(t.ColumnKeys, e.column)
		for i, name := range r.Metrics {
			if m := e.of.Metric(tidy.SplitMetric(name)); m != nil {
				samples[[3]int{row, column, i}] = append(samples[[3]int{row, column, i}], m.Value)
			}
		}
	}
	t.sum(samples)
	first := map[string]*tidy.Measured{} // by experiment
	for _, e := range entries {
		experiment := e.of.Setting("experiment").Text
		first[experiment] = cmp.Or(first[experiment], e.of)
		if other := first[experiment].Differs(e.of); other != "" {
			t.Warnings = append(t.Warnings, "the results were measured with other settings: "+other)
		}
	}
	slices.Sort(t.Warnings)
	t.Warnings = slices.Compact(t.Warnings)
	return t, t.checkMetrics(set)
}

// sum makes the median and the range of what each place has.
func (t *Table) sum(samples map[[3]int][]float64) {
	for row := range t.RowKeys {
		line := make([][]Place, len(t.ColumnKeys))
		for column := range line {
			line[column] = make([]Place, len(t.Metrics))
			for i := range t.Metrics {
				if list := samples[[3]int{row, column, i}]; len(list) > 0 {
					line[column][i] = Place{len(list), measure.Median(list), slices.Min(list), slices.Max(list)}
				}
			}
		}
		t.Places = append(t.Places, line)
	}
}

// checkMetrics reports a metric that is nowhere in the table, so that a misspelt one is
// not taken for one that does not apply.
func (t *Table) checkMetrics(set []*tidy.Measured) error {
	for i, name := range t.Metrics {
		known := false
		for _, line := range t.Places {
			for _, list := range line {
				known = known || list[i].Cells > 0
			}
		}
		if !known {
			return bench.Usagef("--metric %q: no cell has it; there are %s", name, strings.Join(metricNames(set), ", "))
		}
	}
	return nil
}

func metricNames(set []*tidy.Measured) []string {
	var names []string
	for _, r := range set {
		for i := range r.Metrics {
			if name := r.Metrics[i].Name(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// SettingNames lists the settings of all cells, each once.
func SettingNames(set []*tidy.Measured) []string {
	var names []string
	for _, m := range set {
		for _, s := range m.Settings {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// knownSettings reports a name that no cell has as a setting.
func knownSettings(flag string, names, known []string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return bench.Usagef("%s %s: not a setting; the settings are %s", flag, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// parseWhere reads conditions of the form name=value. What is not the value of a cell as it is may be another way to
// write it.
func parseWhere(set []*tidy.Measured, known, texts []string) (Conditions, error) {
	given, exact := map[string][]string{}, Conditions{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, bench.Usagef("--where %q: want NAME=VALUE, such as cache=8MiB", text)
		}
		if err := knownSettings("--where", []string{name}, known); err != nil {
			return nil, err
		}
		of := given
		if slices.ContainsFunc(set, func(m *tidy.Measured) bool { return m.Setting(name).Text == value }) {
			of = exact
		}
		of[name] = append(of[name], value)
	}
	c, err := NewConditions(given)
	if err != nil {
		return nil, fmt.Errorf("--where: %w", err)
	}
	for name, values := range exact {
		c[name] = append(c[name], values...)
	}
	return c, nil
}

// Title says what the table shows.
func (t *Table) Title() string {
	title := strings.Join(t.Metrics, ", ")
	if len(t.Columns) > 0 {
		title += ", by " + strings.Join(t.Columns, " and ")
	}
	if len(t.Where) > 0 {
		title += " (" + strings.Join(t.Where, ", ") + ")"
	}
	return title
}

// ColumnName returns the values of a column in one line, with the metric if there are
// several.
func (t *Table) ColumnName(column, metric int) string {
	name := t.ColumnKeys[column].String()
	switch {
	case name == "":
		return t.Metrics[metric]
	case len(t.Metrics) > 1:
		return t.Metrics[metric] + ", " + name
	}
	return name
}

// A Key is the values of some settings.
type Key struct {
	Shown []string // for a reader
	exact []string // of sizes, the bytes
}

func (k Key) String() string { return strings.Join(k.Shown, " ") }

// Number returns the value of a key of one number: of a filter such as bloom:10 its
// first parameter.
func (k Key) Number() (float64, bool) {
	if len(k.exact) != 1 {
		return 0, false
	}
	_, text, found := strings.Cut(k.exact[0], ":")
	if !found {
		text = k.exact[0]
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// Size reports whether the key is a number of bytes.
func (k Key) Size() bool {
	_, ok := k.Number()
	return ok && strings.HasSuffix(k.Shown[0], "B")
}

func keyOf(m *tidy.Measured, names []string) Key {
	k := Key{}
	for _, name := range names {
		s := m.Setting(name)
		k.Shown, k.exact = append(k.Shown, s.Shown), append(k.exact, s.Text)
	}
	return k
}

// inOrder returns the distinct keys, sorted.
func inOrder(keys []Key) []Key {
	slices.SortFunc(keys, compareKeys)
	return slices.CompactFunc(keys, func(a, b Key) bool { return compareKeys(a, b) == 0 })
}

// indexOf returns where a key is among sorted ones.
func indexOf(keys []Key, k Key) int {
	at, _ := slices.BinarySearchFunc(keys, k, compareKeys)
	return at
}

func compareKeys(a, b Key) int { return slices.CompareFunc(a.exact, b.exact, compareValues) }

// compareValues orders values as a reader expects: numbers in them by size, no filter
// before the others, and the one that never errs after them.
func compareValues(a, b string) int {
	return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(padded(a), padded(b)), strings.Compare(a, b))
}

func order(value string) int {
	switch value {
	case "none", cell.Settled:
		return 0
	case engine.OracleFilter:
		return 2
	}
	return 1
}

var digits = regexp.MustCompile("[0-9]+")

// padded makes all numbers in a text equally long, so that they sort by size.
func padded(text string) string {
	const longest = 20 // digits of a number of 64 bits
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		return strings.Repeat("0", max(0, longest-len(number))) + number
	})
}

// Conditions are the values that each of some settings may have: those of cells in their canonical form, others as they
// are given.
type Conditions map[string][]string

// NewConditions reads the values of settings as they may be written. The error is that of the first text that is no
// value of a cell's setting, and matches no cell.
func NewConditions(given map[string][]string) (Conditions, error) {
	c, wrong := Conditions(maps.Clone(given)), error(nil)
	var s cell.Settings
	for _, f := range cell.Fields(&s) {
		for _, text := range given[f.Name] {
			if err := f.Set(text); err != nil {
				wrong = cmp.Or(wrong, err)
				continue
			}
			c[f.Name] = append(slices.Clip(c[f.Name]), f.Text())
		}
	}
	return c, wrong
}

// Match reports whether a cell has one of the values of each setting.
func (c Conditions) Match(settings []tidy.Setting) bool {
	for name, list := range c {
		if !slices.ContainsFunc(settings, func(s tidy.Setting) bool {
			return s.Name == name && slices.Contains(list, s.Text)
		}) {
			return false
		}
	}
	return true
}
