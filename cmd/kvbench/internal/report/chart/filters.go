package chart

import (
	"cmp"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/filterpolicy"
)

// family returns the engine and the family of a cell's filter.
func family(r *cell.Result) string {
	name, _, _ := strings.Cut(r.Settings.Filter, ":")
	return r.Settings.Engine + " " + name
}

// add appends a point to the series of a name, which it makes if it is new.
func add(list []Series, name string, p Point) []Series {
	at := slices.IndexFunc(list, func(s Series) bool { return s.Name == name })
	if at < 0 {
		at, list = len(list), append(list, Series{Name: name})
	}
	list[at].Points = append(list[at].Points, p)
	return list
}

// rates sets false-positive rates against bits per key, with theory.
func rates(set []*cell.Result, labels []string) Chart {
	c := Chart{
		ID: "fpr", Title: "False-positive rate against bits per key", Form: Lines,
		X: Axis{Name: "filter bits per key, on disk"},
		Y: Axis{Name: "false-positive rate", Log: true},
		Note: "With 95 % Wilson intervals. Dashed: theory, for a file of as many keys. Of a rate of zero the upper " +
			"end of its interval is drawn; the oracle is left out.",
	}
	families := map[string]int{} // keys per file
	for i, r := range set {
		f := r.Absent.FPR
		if f == nil || r.BitsPerKey == 0 || r.Settings.Filter == engine.OracleFilter {
			continue
		}
		p := Point{X: r.BitsPerKey, Y: f.Value, Low: f.Low, High: f.High, Label: labels[i]}
		if p.Y == 0 {
			p.Y, p.Low = f.High, f.High
		}
		c.Series = add(c.Series, family(r), p)
		if total := r.Shape.Total(); total.Files > 0 {
			name, _, _ := strings.Cut(r.Settings.Filter, ":")
			families[name] = int(total.Entries) / total.Files
		}
	}
	if len(c.Series) == 0 {
		return Chart{}
	}
	for _, f := range filterpolicy.Families() {
		if keys, ok := families[f]; ok {
			if s := theory(f, keys); len(s.Points) > 1 {
				like := slices.IndexFunc(c.Series, func(s Series) bool { return strings.HasSuffix(s.Name, " "+f) })
				s.Like = c.Series[like].Name
				c.Series = append(c.Series, s)
			}
		}
	}
	return c
}

// theory is the line of a family whose bits can be chosen.
func theory(family string, keys int) Series {
	s := Series{Name: family + " theory", Line: true, Dashed: true}
	base, err := filterpolicy.Parse(family + ":10")
	if err != nil {
		return s
	}
	const least, most = 4, 20
	for bits := float64(least); bits <= most; bits++ {
		p, ok := filterpolicy.WithBits(base, bits)
		if !ok {
			continue
		}
		e := filterpolicy.Expected(p, keys)
		if n := len(s.Points); n > 0 && s.Points[n-1].X >= e.BitsPerKey {
			continue // whole bits only
		}
		s.Points = append(s.Points, Point{X: e.BitsPerKey, Y: e.FPR, Label: p.String()})
	}
	return s
}

// pareto sets what a lookup of an absent key reads against the memory of filters.
func pareto(set []*cell.Result, labels []string) Chart {
	c := Chart{
		ID: "pareto", Title: "Blocks per lookup of an absent key against filter memory", Form: Lines,
		X: Axis{Name: "filter bits per key, on disk"},
		Y: Axis{Name: "blocks per lookup", Log: true},
		Note: "Lower left is better. The front joins what no other cell beats in both. Where no lookup read a block, " +
			"one block in all lookups is drawn. The oracle, whose memory is not counted, is left out.",
	}
	var all []Point
	for i, r := range set {
		blocks, memory := r.Metric("absent", "blocks/op"), r.Metric(cell.StoreKind, "filter-bits/key")
		if blocks == nil || memory == nil || r.Settings.Filter == engine.OracleFilter { // its memory is not counted
			continue
		}
		p := Point{X: memory.Value, Y: blocks.Value, Label: labels[i]}
		if p.Y == 0 {
			p.Y = 1 / float64(r.Absent.Lookups)
		}
		all = append(all, p)
		c.Series = add(c.Series, family(r), p)
	}
	if len(all) > 0 {
		c.Series = append(c.Series, Series{Name: "front", Points: front(all), Line: true, Dashed: true, Neutral: true})
	}
	return c
}

// front returns the points that no other beats in X and in Y, by X.
func front(points []Point) []Point {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y))
	})
	var out []Point
	for _, p := range sorted {
		if len(out) == 0 || p.Y < out[len(out)-1].Y {
			out = append(out, p)
		}
	}
	return out
}

// spectrum shows the latency at each percentile.
func spectrum(set []*cell.Result, labels []string, kind string) Chart {
	c := Chart{
		ID: "latency-" + kind, Title: "Latency of single lookups of " + kind + " keys", Form: Lines,
		X:    Axis{Name: "percentile", Unit: Percentile, Log: true},
		Y:    Axis{Name: "latency", Unit: Nanoseconds, Log: true},
		Note: "Each latency has one reading of the clock in it. The last point is the slowest of all.",
	}
	for i, r := range set {
		p := &r.Existing
		if kind == "absent" {
			p = &r.Absent
		}
		s := Series{Name: labels[i], Line: true}
		for _, q := range p.Spectrum {
			in := 100 / (100 - q.Percentile)
			if q.Percentile >= 100 {
				in = float64(p.Latency.Lookups)
			}
			if n := len(s.Points); q.Nanos <= 0 || in > float64(p.Latency.Lookups) || n > 0 && s.Points[n-1].X >= in {
				continue
			}
			s.Points = append(s.Points, Point{X: in, Y: float64(q.Nanos)})
		}
		if len(s.Points) > 1 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}
