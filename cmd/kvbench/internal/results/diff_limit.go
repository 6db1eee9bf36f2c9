package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
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

// Missing is a metric that a limit is for: a cell of the first set has it, and the second set has not.
type Missing struct {
	Limit string `json:"limit"`
	Cell  string `json:"cell"`
	Kind  string `json:"kind"`
	Unit  string `json:"unit"`
}

// covers reports whether the limit is for a metric.
func (l Limit) covers(m *cell.Metric) bool {
	return m.Unit == l.Unit && (l.Kind == "" || m.Kind == l.Kind)
}

// enforce notes the violations of limits, and what is missing for them, in the cells of both sets and in those that
// are gone from the second. A limit on a metric that no cell of the first set has is an error, so that a misspelt one
// does not hold forever.
func (d *Diff) enforce(limits []Limit, gone []Pair) error {
	for _, l := range limits {
		known, units := false, []string{}
		for _, p := range slices.Concat(d.Cells, gone) {
			for i := range p.A.Metrics {
				m := &p.A.Metrics[i]
				if !slices.Contains(units, m.Unit) {
					units = append(units, m.Unit)
				}
				if l.covers(m) {
					known = true
					d.enforceOn(l, &p, m)
				}
			}
		}
		if !known {
			return bench.Usagef("--fail-on %q: no cell of the first set has that metric; there are %s", l.text,
				strings.Join(units, ", "))
		}
	}
	return nil
}

// enforceOn is enforce for one metric.
func (d *Diff) enforceOn(l Limit, p *Pair, m *cell.Metric) {
	same := func(c Comparison) bool { return c.Kind == m.Kind && c.Unit == m.Unit }
	at := slices.IndexFunc(p.Metrics, same)
	if at < 0 {
		d.Missing = append(d.Missing, Missing{l.text, p.Name, m.Kind, m.Unit})
	} else if c := &p.Metrics[at]; l.passes(c) {
		d.Violations = append(d.Violations, Violation{l.text, p.Name, *c})
	}
}

// Err returns nil if no limit is passed and no metric of one is missing. Otherwise the error matches
// bench.ErrThreshold and shows the first of them.
func (d *Diff) Err() error {
	switch {
	case len(d.Violations) > 0:
		v := d.Violations[0]
		return fmt.Errorf("%w: %s: %s, %s %s changed by %+.2f %% (%d violations in all, %d metrics missing)",
			bench.ErrThreshold, v.Limit, v.Cell, v.Kind, v.Unit, 100*float64(v.Delta), len(d.Violations),
			len(d.Missing))
	case len(d.Missing) > 0:
		m := d.Missing[0]
		return fmt.Errorf("%w: %s: %s, %s %s is missing from the second set (%d missing in all)",
			bench.ErrThreshold, m.Limit, m.Cell, m.Kind, m.Unit, len(d.Missing))
	}
	return nil
}
