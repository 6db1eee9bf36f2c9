package advise

import (
	"cmp"
	"slices"
)

// Front returns the predictions that no other one beats: with less memory, or as much, all others
// cost more. It is in the order of memory, and cost falls along it. Cost is any number of a
// prediction, such as Prediction.Score.
func Front(all []Prediction, cost func(p *Prediction) float64) []Prediction {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Prediction) int {
		if c := cmp.Compare(a.Memory, b.Memory); c != 0 {
			return c
		}
		return cmp.Compare(cost(&a), cost(&b))
	})
	var front []Prediction
	for _, p := range sorted {
		if len(front) == 0 || cost(&p) < cost(&front[len(front)-1]) {
			front = append(front, p)
		}
	}
	return front
}

// Score is the mean cost of an operation of the trace, in nanoseconds by the prices: lookups and
// scans together.
func (p *Prediction) Score() float64 {
	n := p.All.Operations + p.Scans.Operations
	if n == 0 {
		return 0
	}
	return (p.All.Nanos*float64(p.All.Operations) + p.Scans.Nanos*float64(p.Scans.Operations)) / float64(n)
}

// Reads is how many device reads a lookup makes on average.
func (p *Prediction) Reads() float64 { return p.All.Reads }
