package results

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
)

// DiffSchema names the form of a Diff in JSON.
const DiffSchema = "kvbench.diff/v1"

// A Diff is what changed from one set of results to another.
type Diff struct {
	Schema     string      `json:"schema"`
	Cells      []Pair      `json:"cells"`
	OnlyA      []string    `json:"only_a"` // names of cells
	OnlyB      []string    `json:"only_b"`
	Equal      int         `json:"equal"`   // exact metrics that are equal
	Changed    int         `json:"changed"` // exact metrics that are not
	Violations []Violation `json:"violations"`
	Missing    []Missing   `json:"missing"`
	Warnings   []string    `json:"warnings"`
}

// A Pair is a cell in both sets.
type Pair struct {
	Name    string       `json:"name"`
	Metrics []Comparison `json:"metrics"`

	A, B *cell.Result `json:"-"`
}

// A Verdict says what became of a metric.
type Verdict string

// Verdicts. Of times, Unclear is what a test with more samples might tell.
const (
	Same    Verdict = "same"
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Changed Verdict = "changed" // neither is better
	Unclear Verdict = "unclear"
)

// A Comparison is a metric in both results of a cell.
type Comparison struct {
	Kind    string  `json:"kind"`
	Unit    string  `json:"unit"`
	Exact   bool    `json:"exact"`
	A       float64 `json:"a"`
	B       float64 `json:"b"`
	Delta   Change  `json:"delta"` // b/a - 1
	Rank    *Rank   `json:"rank"`  // null for what is exact and for single numbers
	Verdict Verdict `json:"verdict"`
}

// A Change is a relative difference. From zero it is infinite, which JSON writes null.
type Change float64

// MarshalJSON writes an infinite change as null.
func (c Change) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(c), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(c))
}

// Compare compares two sets of results. Cells are the same if their settings are; two sets
// of one cell each are compared whatever their settings.
func Compare(a, b []*cell.Result, limits []Limit) (*Diff, error) {
	d := &Diff{Schema: DiffSchema, OnlyA: []string{}, OnlyB: []string{}, Violations: []Violation{},
		Missing: []Missing{}, Warnings: []string{}}
	right := map[string]*cell.Result{}
	for _, r := range b {
		right[r.Settings.Text()] = r
	}
	var pairs, gone []Pair
	for _, r := range a {
		other := right[r.Settings.Text()]
		if other == nil && len(a) == 1 && len(b) == 1 {
			other = b[0]
		}
		if other == nil {
			d.OnlyA = append(d.OnlyA, r.Name)
			gone = append(gone, Pair{Name: r.Name, A: r})
			continue
		}
		delete(right, other.Settings.Text())
		pairs = append(pairs, Pair{Name: r.Name, A: r, B: other})
	}
	for _, r := range b {
		if right[r.Settings.Text()] != nil {
			d.OnlyB = append(d.OnlyB, r.Name)
		}
	}
	if len(pairs) == 0 {
		return nil, bench.Usagef("the two sets have no cell in common: compare runs of the same settings, or one " +
			"result with one other")
	}
	for i := range pairs {
		d.pair(&pairs[i])
	}
	d.Cells = pairs
	d.warn()
	return d, d.enforce(limits, gone)
}

// pair compares the metrics of a cell.
func (d *Diff) pair(p *Pair) {
	for _, m := range p.A.Metrics {
		other := p.B.Metric(m.Kind, m.Unit)
		if other == nil {
			continue
		}
		c := compare(&m, other)
		if c.Exact {
			if c.Verdict == Same {
				d.Equal++
			} else {
				d.Changed++
			}
		}
		p.Metrics = append(p.Metrics, c)
	}
}

// compare compares one metric.
func compare(a, b *cell.Metric) Comparison {
	c := Comparison{Kind: a.Kind, Unit: a.Unit, Exact: a.Exact, A: a.Value, B: b.Value, Verdict: Unclear}
	switch a.Value {
	case b.Value:
		c.Delta = 0
	case 0:
		c.Delta = Change(math.Copysign(math.Inf(1), b.Value))
	default:
		c.Delta = Change(b.Value/a.Value - 1)
	}
	if a.Exact {
		c.Verdict = verdict(a.Better, float64(c.Delta))
		return c
	}
	if len(a.Samples) < 2 || len(b.Samples) < 2 {
		return c // one number of each tells nothing about chance
	}
	if c.Rank = rank(a.Samples, b.Samples); c.Rank == nil {
		return c
	}
	c.Delta = Change(c.Rank.Ratio - 1)
	if c.Rank.P < Alpha {
		c.Verdict = verdict(a.Better, float64(c.Delta))
	}
	return c
}

// verdict says whether a change is for the better.
func verdict(better string, delta float64) Verdict {
	switch {
	case delta == 0:
		return Same
	case better == "":
		return Changed
	case better == "lower" == (delta < 0):
		return Better
	}
	return Worse
}

// warn says what makes the comparison less trustworthy.
func (d *Diff) warn() {
	add := func(text string) {
		if !slices.Contains(d.Warnings, text) {
			d.Warnings = append(d.Warnings, text)
		}
	}
	for _, p := range d.Cells {
		a, b := &p.A.Environment, &p.B.Environment
		if a.CPU != b.CPU || a.Cores != b.Cores || a.Kernel != b.Kernel {
			add("the sets come from different machines: times cannot be compared")
		}
		if a.GoVersion != b.GoVersion {
			add("the sets come from different Go versions: " + a.GoVersion + " and " + b.GoVersion)
		}
		for _, c := range p.Metrics {
			if c.Rank != nil && c.Rank.Level < 1-Alpha {
				add("too few repetitions: with fewer than 4 in each set no difference of times can be told from " +
					"chance at 95 %; use --reps 5 or more")
			}
		}
	}
}
