package report

import (
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/bench/cell"
)

// Labels tells the cells of a set apart: by the settings in which they differ, the
// engine and the filter first and always.
type Labels struct {
	Varying []string   // names of settings, in the order of their text
	Common  []string   // name value of all others
	values  [][]string // by cell, in the order of Varying
}

// NewLabels compares the settings of cells.
func NewLabels(set []*cell.Result) *Labels {
	l := &Labels{values: make([][]string, len(set))}
	for n, name := range cell.FieldNames() {
		differs := name == "engine" || name == "filter"
		texts := make([]string, len(set))
		for i, r := range set {
			texts[i] = cell.Fields(&r.Settings)[n].Show()
			differs = differs || texts[i] != texts[0]
		}
		switch {
		case differs:
			l.Varying = append(l.Varying, name)
			for i, text := range texts {
				l.values[i] = append(l.values[i], text)
			}
		case len(set) > 0:
			l.Common = append(l.Common, name+" "+texts[0])
		}
	}
	return l
}

// Values returns the values of the varying settings of the n-th cell.
func (l *Labels) Values(n int) []string { return l.values[n] }

// spoken are settings whose values say by themselves what they are of.
var spoken = []string{"budget", "compaction", "shape", "workload", "state"}

// Text returns the values in one line, no two of which are alike: of settings whose
// values speak for themselves what is usual is left out, others have their names.
func (l *Labels) Text(n int) string {
	usual, names := cell.Default(), cell.FieldNames()
	fields := cell.Fields(&usual)
	var out []string
	for i, name := range l.Varying {
		value := l.values[n][i]
		switch {
		case name == "engine" || name == "filter":
			out = append(out, value)
		case !slices.Contains(spoken, name):
			out = append(out, name+" "+value)
		case value != fields[slices.Index(names, name)].Show():
			out = append(out, value)
		}
	}
	return strings.Join(out, " ")
}
