package results

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// A Query says what of a set is wanted. Settings have the names of cell.Fields,
// metrics a kind and a unit, such as "absent blocks/op".
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
}

// A Place sums up a metric of the cells that are in one row and column.
type Place struct {
	Cells             int // 0: none has the metric
	Median, Low, High float64
}

// Pivot makes the table of a set. A name that is not known, and a metric that no cell
// has, match bench.ErrUsage.
func Pivot(set []*cell.Result, r Query) (*Table, error) {
	wanted, err := parseWhere(r.Where)
	if err != nil {
		return nil, err
	}
	rows, err := fieldNumbers("--rows", r.Rows)
	if err != nil {
		return nil, err
	}
	columns, err := fieldNumbers("--columns", r.Columns)
	if err != nil {
		return nil, err
	}
	t := &Table{Query: r}
	for _, name := range r.Metrics {
		if err := checkMetric(name); err != nil {
			return nil, err
		}
	}
	type entry struct {
		row, column Key
		result      *cell.Result
	}
	var entries []entry
	for _, result := range set {
		if wanted.Match(result.Settings) {
			entries = append(entries, entry{keyOf(result, rows), keyOf(result, columns), result})
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
			kind, unit, _ := strings.Cut(name, " ")
			if m := e.result.Metric(kind, unit); m != nil {
				samples[[3]int{row, column, i}] = append(samples[[3]int{row, column, i}], m.Value)
			}
		}
	}
	t.sum(samples)
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
func (t *Table) checkMetrics(set []*cell.Result) error {
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

// metricNames lists the metrics of all cells, each once.
func metricNames(set []*cell.Result) []string {
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

// fieldNumbers returns where settings are in cell.Fields.
func fieldNumbers(flag string, names []string) ([]int, error) {
	var numbers []int
	all := cell.FieldNames()
	for _, name := range names {
		n := slices.Index(all, name)
		if n < 0 {
			return nil, bench.Usagef("%s %s: not a setting; the settings are %s", flag, name, strings.Join(all, ", "))
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// parseWhere reads conditions of the form name=value.
func parseWhere(texts []string) (Conditions, error) {
	given := map[string][]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, bench.Usagef("--where %q: want NAME=VALUE, such as cache=8MiB", text)
		}
		if _, err := fieldNumbers("--where", []string{name}); err != nil {
			return nil, err
		}
		given[name] = append(given[name], value)
	}
	c, err := NewConditions(given)
	if err != nil {
		return nil, fmt.Errorf("--where: %w", err)
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

// checkMetric reports a name that is not of the form of a metric's.
func checkMetric(name string) error {
	kinds := []string{string(engine.Absent), string(engine.Existing), cell.ScanKind, cell.StoreKind}
	if kind, unit, ok := strings.Cut(name, " "); !ok || unit == "" || !slices.Contains(kinds, kind) {
		return bench.Usagef("--metric %q: want one of %s and a unit, such as 'absent blocks/op'", name,
			strings.Join(kinds, ", "))
	}
	return nil
}

// A Key is the values of some settings.
type Key struct {
	Shown []string // for a reader
	exact []string // of sizes, the bytes
}

// String returns the values in one line.
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

// keyOf returns the values of some settings of a cell, given by their place in
// cell.Fields.
func keyOf(r *cell.Result, numbers []int) Key {
	k, fields := Key{}, cell.Fields(&r.Settings)
	for _, n := range numbers {
		k.Shown, k.exact = append(k.Shown, fields[n].Show()), append(k.exact, fields[n].Text())
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

// Conditions are the values, in their canonical form, that each of some settings may have.
type Conditions map[string][]string

// NewConditions reads the values of settings as they may be written. The error is that of
// the first text that is no value of its setting, and matches nothing.
func NewConditions(given map[string][]string) (Conditions, error) {
	c, wrong := Conditions{}, error(nil)
	var s cell.Settings
	for _, f := range cell.Fields(&s) {
		for _, text := range given[f.Name] {
			if err := f.Set(text); err != nil {
				c[f.Name], wrong = append(c[f.Name], ""), cmp.Or(wrong, err)
				continue
			}
			c[f.Name] = append(c[f.Name], f.Text())
		}
	}
	return c, wrong
}

// Match reports whether a cell has one of the values of each setting.
func (c Conditions) Match(s cell.Settings) bool {
	for _, f := range cell.Fields(&s) {
		if list, ok := c[f.Name]; ok && !slices.Contains(list, f.Text()) {
			return false
		}
	}
	return true
}
