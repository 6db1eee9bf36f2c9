package results

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aclements/go-moremath/stats"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// A Diff is what changed from one set of results to another.
type Diff struct {
	Cells      []Pair
	OnlyA      []string // names of cells
	OnlyB      []string
	Equal      int // exact metrics that are equal
	Changed    int // exact metrics that are not
	Violations []Violation
	Warnings   []string
}

// A Pair is a cell in both sets.
type Pair struct {
	Name    string
	Metrics []Comparison

	A, B *tidy.Measured
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
	Kind    string
	Unit    string
	Exact   bool
	A       float64
	B       float64
	N       [2]int  // repetitions of both
	Delta   float64 // b/a - 1; infinite from zero
	Rank    *Rank   // null for what is exact and for single numbers
	Verdict Verdict
}

// Name returns the metric's name.
func (c *Comparison) Name() string { return tidy.MetricName(c.Kind, c.Unit) }

// Rows returns the same as rows: the numbers of both sets by cell and metric, with their verdict. There is a 1 for each
// metric that is exact, each cell that one set lacks, and each limit that is exceeded or lacks its metric. A change
// from zero has no row. The environment is that of the first set.
func (d *Diff) Rows() *tidy.Result {
	r := tidy.New("diff", fmt.Sprintf("Two sets of results: %s in both", bench.Times(len(d.Cells), "cell")), nil,
		*d.Cells[0].A.Environment)
	r.Notes = d.Warnings
	r.Add(tidy.Cell{}, "counters-equal", "", float64(d.Equal))
	r.Add(tidy.Cell{}, "counters-changed", "", float64(d.Changed))
	for i, names := range [][]string{d.OnlyA, d.OnlyB} {
		for _, name := range names {
			r.Add(tidy.Of("cell", name), []string{"only-first", "only-second"}[i], "", 1)
		}
	}
	for _, p := range d.Cells {
		for i := range p.Metrics {
			p.addTo(r, &p.Metrics[i])
		}
	}
	for _, v := range d.Violations {
		what := "exceeded"
		if v.Missing {
			what = "missing"
		}
		r.Add(tidy.Of("cell", v.Cell, "of", v.Name(), "limit", v.Limit), what, "", 1)
	}
	return r
}

func (p *Pair) addTo(r *tidy.Result, c *Comparison) {
	of, unit := tidy.Of("cell", p.Name, "of", c.Name(), "verdict", c.Verdict), c.Unit
	if p.A.Units != nil {
		unit = p.A.Units[c.Name()]
	}
	r.Add(of, "first", unit, c.A)
	r.Add(of, "second", unit, c.B)
	r.Add(of, "first-n", "", float64(c.N[0]))
	r.Add(of, "second-n", "", float64(c.N[1]))
	if !math.IsInf(c.Delta, 0) {
		r.Add(of, "change", "", c.Delta)
	}
	if c.Exact {
		r.Add(of, "exact", "", 1)
	}
	if rank := c.Rank; rank != nil {
		r.Add(of, "p", "", rank.P)
		r.Add(of, "ratio", "", rank.Ratio)
		r.Add(of, "ratio-low", "", rank.Low)
		r.Add(of, "ratio-high", "", rank.High)
		r.Add(of, "confidence", "", rank.Level)
	}
}

// Compare compares two sets of results. Cells are the same if their settings are; two sets
// of one cell each are compared whatever their settings.
func Compare(a, b []*tidy.Measured, limits []Limit) (*Diff, error) {
	d := &Diff{}
	_, err := byText(a)
	right, errB := byText(b)
	if err := cmp.Or(err, errB); err != nil {
		return nil, err
	}
	var pairs, gone []Pair
	for _, r := range a {
		other := right[r.Text()]
		if other == nil && len(a) == 1 && len(b) == 1 {
			other = b[0]
		}
		if other == nil {
			d.OnlyA = append(d.OnlyA, r.Name)
			gone = append(gone, Pair{Name: r.Name, A: r})
			continue
		}
		delete(right, other.Text())
		pairs = append(pairs, Pair{Name: r.Name, A: r, B: other})
	}
	for _, r := range b {
		if right[r.Text()] != nil {
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

// byText returns cells by their text, which no two may share.
func byText(set []*tidy.Measured) (map[string]*tidy.Measured, error) {
	cells := map[string]*tidy.Measured{}
	for _, m := range set {
		if o := cells[m.Text()]; o != nil {
			return nil, bench.Usagef("a set has %s more than once (%s): compare sets of runs with the same settings "+
				"on one machine, each cell once", m.Name, cmp.Or(o.Differs(m), "with the same settings"))
		}
		cells[m.Text()] = m
	}
	return cells, nil
}

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

func compare(a, b *tidy.Metric) Comparison {
	c := Comparison{Kind: a.Kind, Unit: a.Unit, Exact: a.Exact && b.Exact, A: a.Value, B: b.Value, Verdict: Unclear,
		N: [2]int{max(1, len(a.Samples)), max(1, len(b.Samples))}}
	switch a.Value {
	case b.Value:
		c.Delta = 0
	case 0:
		c.Delta = math.Copysign(math.Inf(1), b.Value)
	default:
		c.Delta = b.Value/a.Value - 1
	}
	if c.Exact {
		c.Verdict = verdict(a.Better, c.Delta)
		return c
	}
	if min(c.N[0], c.N[1]) < 2 {
		return c // one number of each tells nothing about chance
	}
	if c.Rank = rank(a.Samples, b.Samples); c.Rank == nil {
		return c
	}
	c.Delta = c.Rank.Ratio - 1
	if c.Rank.P < Alpha {
		c.Verdict = verdict(a.Better, c.Delta)
	}
	return c
}

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

func (d *Diff) warn() {
	add := func(text string) {
		if !slices.Contains(d.Warnings, text) {
			d.Warnings = append(d.Warnings, text)
		}
	}
	for _, p := range d.Cells {
		a, b := p.A.Environment, p.B.Environment
		if other := p.A.Differs(p.B); other != "" {
			add("the sets were measured with other settings: " + other)
		}
		if !sameMachine(a, b) {
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

// A Limit is a change that is not to be: "ns/op>5%", "absent blocks/op>0%",
// "existing ns/op<-50%".
type Limit struct {
	text  string
	Kind  string // such as existing, absent or store; empty: all
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
	l := Limit{text: text, Above: text[at] == '>', Delta: percent / 100}
	l.Kind, l.Unit = tidy.SplitMetric(strings.Join(strings.Fields(text[:at]), " "))
	if !ok || err != nil || l.Unit == "" {
		return Limit{}, wrong
	}
	return l, nil
}

// A Violation is a change that a limit forbids, or a metric of a limit that a cell of the first set has and the second
// set has not.
type Violation struct {
	Limit   string
	Cell    string
	Missing bool // Comparison has the name of the metric alone
	Comparison
}

func (v *Violation) String() string {
	if v.Missing {
		return fmt.Sprintf("%s: %s: %s is missing from the second set", v.Limit, v.Cell, v.Name())
	}
	change := "from 0"
	if !math.IsInf(v.Delta, 0) {
		change = fmt.Sprintf("%+.2f %%", 100*v.Delta)
	}
	exact := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	return fmt.Sprintf("%s: %s: %s %s → %s (%s)", v.Limit, v.Cell, v.Name(), exact(v.A), exact(v.B), change)
}

// passes reports whether a change is beyond the limit: of times, by the estimate, and
// only if the test can tell it from chance.
func (l Limit) passes(c *Comparison) bool {
	if c.Rank != nil && c.Rank.P >= Alpha {
		return false
	}
	if l.Above {
		return c.Delta > l.Delta
	}
	return c.Delta < l.Delta
}

func (l Limit) covers(m *tidy.Metric) bool {
	return m.Unit == l.Unit && (l.Kind == "" || m.Kind == l.Kind)
}

// enforce notes the violations of limits, and what is missing for them, in the cells of both sets and in those that
// are gone from the second. A limit on a metric that no cell of the first set has is an error, so that a misspelt one
// does not hold forever.
func (d *Diff) enforce(limits []Limit, gone []Pair) error {
	for _, l := range limits {
		known, names := false, []string{}
		for _, p := range slices.Concat(d.Cells, gone) {
			for i := range p.A.Metrics {
				m := &p.A.Metrics[i]
				if !slices.Contains(names, m.Name()) {
					names = append(names, m.Name())
				}
				if l.covers(m) {
					known = true
					d.enforceOn(l, &p, m)
				}
			}
		}
		if !known {
			return bench.Usagef("--fail-on %q: no cell of the first set has that metric; there are %s", l.text,
				strings.Join(names, ", "))
		}
	}
	return nil
}

func (d *Diff) enforceOn(l Limit, p *Pair, m *tidy.Metric) {
	same := func(c Comparison) bool { return c.Kind == m.Kind && c.Unit == m.Unit }
	at := slices.IndexFunc(p.Metrics, same)
	if at < 0 {
		d.Violations = append(d.Violations, Violation{l.text, p.Name, true, Comparison{Kind: m.Kind, Unit: m.Unit}})
	} else if c := &p.Metrics[at]; l.passes(c) {
		d.Violations = append(d.Violations, Violation{l.text, p.Name, false, *c})
	}
}

// Err returns nil if no limit is passed and no metric of one is missing. Otherwise the error matches
// bench.ErrThreshold and shows the first of them.
func (d *Diff) Err() error {
	if len(d.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s (%s in all)", bench.ErrThreshold, &d.Violations[0],
		bench.Times(len(d.Violations), "violation"))
}

// Alpha is the chance to call samples of one distribution different.
const Alpha = 0.05

// A Rank is what ranks tell of two samples.
type Rank struct {
	P     float64 // two-sided, of the Mann-Whitney U test
	Ratio float64 // of b to a: the Hodges-Lehmann estimate, on the logarithm
	Low   float64 // 95 % interval of the ratio
	High  float64
	// Level is the confidence that the interval has: less than 0.95 if there are too few
	// samples for that.
	Level float64
}

// rank compares two samples of positive numbers, nil if one is empty. The interval is
// the one that belongs to the test: the ratios that it would not reject (M. Hollander,
// D. Wolfe, "Nonparametric Statistical Methods", section 4.3).
func rank(a, b []float64) *Rank {
	if len(a) == 0 || len(b) == 0 || slices.Min(a) <= 0 || slices.Min(b) <= 0 {
		return nil
	}
	r := &Rank{P: 1}
	if test, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers); err == nil {
		r.P = min(1, test.P)
	} else if !errors.Is(err, stats.ErrSamplesEqual) {
		return nil
	}
	logs := make([]float64, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			logs = append(logs, math.Log(y/x))
		}
	}
	slices.Sort(logs)
	r.Ratio = math.Exp(measure.Median(logs))
	out, level := interval(len(a), len(b))
	r.Low, r.High, r.Level = math.Exp(logs[out]), math.Exp(logs[len(logs)-1-out]), level
	return r
}

// interval returns how many of the sorted quotients to drop at either end for a
// 95 % interval, and the confidence that this gives.
func interval(n, m int) (out int, level float64) {
	if max(n, m) > stats.MannWhitneyExactLimit {
		return normalInterval(n, m), 1 - Alpha
	}
	u := stats.UDist{N1: n, N2: m}
	for out+1 < n*m/2 && u.CDF(float64(out)) <= Alpha/2 {
		out++
	}
	// With out dropped at either end, the interval is missed if U < out at one of them.
	if out == 0 {
		return 0, max(0, 1-2*u.CDF(0))
	}
	return out, 1 - 2*u.CDF(float64(out-1))
}

// normalInterval is the same for large samples.
func normalInterval(n, m int) int {
	const z = 1.959963984540054
	x := float64(n) * float64(m)
	return max(0, int(x/2-z*math.Sqrt(x*float64(n+m+1)/12)))
}
