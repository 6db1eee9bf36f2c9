package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/cell"
)

// A Limit is a change that is not to be: "ns/op>5%", "absent blocks/op>0%",
// "existing ns/op<-50%".
type Limit struct {
	text  string
	Kind  string // existing, absent or store; empty: all
	Unit  string
	Above bool    // else below
	Delta float64 // as a fraction
}

// ParseLimits reads limits separated by commas.
func ParseLimits(texts []string) ([]Limit, error) {
	var limits []Limit
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			l, err := parseLimit(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			limits = append(limits, l)
		}
	}
	return limits, nil
}

func parseLimit(text string) (Limit, error) {
	wrong := bench.Usagef("--fail-on %q: want a metric, > or <, and a percentage, such as 'ns/op>5%%' or 'absent "+
		"blocks/op>0%%'", text)
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return Limit{}, wrong
	}
	number, ok := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	l := Limit{text: text, Unit: strings.TrimSpace(text[:at]), Above: text[at] == '>', Delta: percent / 100}
	if kind, unit, found := strings.Cut(l.Unit, " "); found {
		l.Kind, l.Unit = kind, strings.TrimSpace(unit)
	}
	if !ok || err != nil || l.Unit == "" {
		return Limit{}, wrong
	}
	if l.Kind != "" && !slices.Contains([]string{"existing", "absent", cell.StoreKind}, l.Kind) {
		return Limit{}, bench.Usagef("--fail-on %q: %s is none of existing, absent, store", text, l.Kind)
	}
	return l, nil
}

// A Violation is a change that a limit forbids.
type Violation struct {
	Limit string `json:"limit"`
	Cell  string `json:"cell"`
	Comparison
}

// passes reports whether a change is beyond the limit: of times, by the estimate, and
// only if the test can tell it from chance.
func (l Limit) passes(c *Comparison) bool {
	if c.Rank != nil && c.Rank.P >= Alpha {
		return false
	}
	if l.Above {
		return float64(c.Delta) > l.Delta
	}
	return float64(c.Delta) < l.Delta
}

// enforce notes the violations of limits. A limit on what no cell has is an error, so
// that a misspelt one does not hold forever.
func (d *Diff) enforce(limits []Limit) error {
	for _, l := range limits {
		known, units := false, []string{}
		for _, p := range d.Cells {
			for i := range p.Metrics {
				c := &p.Metrics[i]
				if !slices.Contains(units, c.Unit) {
					units = append(units, c.Unit)
				}
				if c.Unit != l.Unit || l.Kind != "" && c.Kind != l.Kind {
					continue
				}
				known = true
				if l.passes(c) {
					d.Violations = append(d.Violations, Violation{l.text, p.Name, *c})
				}
			}
		}
		if !known {
			return bench.Usagef("--fail-on %q: no cell has that metric; there are %s", l.text,
				strings.Join(units, ", "))
		}
	}
	return nil
}

// Err returns nil if no limit is passed, and otherwise an error that matches
// bench.ErrThreshold and shows the first.
func (d *Diff) Err() error {
	if len(d.Violations) == 0 {
		return nil
	}
	v := d.Violations[0]
	return fmt.Errorf("%w: %s: %s, %s %s changed by %+.2f %% (%d violations in all)",
		bench.ErrThreshold, v.Limit, v.Cell, v.Kind, v.Unit, 100*float64(v.Delta), len(d.Violations))
}
