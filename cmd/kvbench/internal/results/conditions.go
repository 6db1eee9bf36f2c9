package results

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
)

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
