package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
)

// Labels tells the cells of a set apart: by the settings in which they differ, the
// engine and the filter first and always.
type Labels struct {
	Varying []string // names of settings, in the order of their text
	Common  []string // name value of all others
	values  [][]Item // by cell, in the order of Varying
}

// NewLabels compares the settings of cells.
func NewLabels(set []*cell.Result) *Labels {
	l := &Labels{values: make([][]Item, len(set))}
	for n, name := range cell.FieldNames() {
		differs := name == "engine" || name == "filter"
		items := make([]Item, len(set))
		for i, r := range set {
			items[i] = settingItem(cell.Fields(&r.Settings)[n])
			differs = differs || items[i].Text != items[0].Text
		}
		switch {
		case differs:
			l.Varying = append(l.Varying, name)
			for i := range items {
				l.values[i] = append(l.values[i], items[i])
			}
		case len(set) > 0:
			l.Common = append(l.Common, name+" "+items[0].Text)
		}
	}
	return l
}

// settingItem shows a setting, and sorts it by its number if it has one.
func settingItem(f cell.Field) Item {
	if x, err := strconv.ParseFloat(f.Text(), 64); err == nil {
		return number(x, f.Show())
	}
	return word(f.Show())
}

// Values returns the values of the varying settings of the n-th cell.
func (l *Labels) Values(n int) []Item { return l.values[n] }

// Text returns the values in one line, no two of which are alike: of settings whose
// values speak for themselves only unusual ones are shown, others have their names.
func (l *Labels) Text(n int) string {
	usual, names := cell.Default(), cell.FieldNames()
	fields := cell.Fields(&usual)
	var out []string
	for i, name := range l.Varying {
		value, field := l.values[n][i].Text, fields[slices.Index(names, name)]
		switch {
		case name == "engine" || name == "filter":
			out = append(out, value)
		case field.Label != "%s": // its values do not say what they are of
			out = append(out, name+" "+value)
		case value != field.Show():
			out = append(out, value)
		}
	}
	return strings.Join(out, " ")
}
