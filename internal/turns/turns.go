// Package turns compares what stores cost, in benchmarks that measure them in turns. A machine that others use too does
// not keep its speed: ratios within a round say more than times do, and processor time more than that of a clock.
package turns

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Table is the figures of several stores, in rounds.
type Table struct {
	rows    []string // names of figures, in the order of Add
	figures map[string]map[string][]float64
}

// Add adds the figure of a store in a round. Each store has one of each name in a round, the less the better.
func (t *Table) Add(store, name string, figure float64) {
	if t.figures == nil {
		t.figures = map[string]map[string][]float64{}
	}
	if t.figures[name] == nil {
		t.figures[name] = map[string][]float64{}
		t.rows = append(t.rows, name)
	}
	t.figures[name][store] = append(t.figures[name][store], figure)
}

// Measure adds the processor time of f for each of n steps, in nanoseconds. That of the process counts, with its work
// in the background. Garbage is collected before: what others left is not for f to pay for.
func (t *Table) Measure(store, name string, n int, f func()) {
	runtime.GC()
	start := ProcessorTime()
	f()
	t.Add(store, name, float64(ProcessorTime()-start)/float64(n))
}

// Print prints the medians of ours and of each other store, and the median of the ratios of a round with their range. A
// store may lack a figure.
func (t *Table) Print(b *testing.B, ours string, others ...string) {
	fmt.Println(t.text(ours, others)) // the log of a benchmark has ten lines at most
	b.ReportMetric(0, "ns/op")
}

func (t *Table) text(ours string, others []string) string {
	var text strings.Builder
	for _, row := range t.rows {
		mine := t.figures[row][ours]
		var parts []string
		if len(mine) > 0 {
			parts = append(parts, fmt.Sprintf("%s %.5g", ours, median(mine)))
		}
		for _, other := range others {
			theirs := t.figures[row][other]
			if len(theirs) == 0 {
				continue
			}
			part := fmt.Sprintf("%s %.5g", other, median(theirs))
			if len(mine) > 0 {
				ratios := make([]float64, min(len(mine), len(theirs)))
				for i := range ratios {
					ratios[i] = mine[i] / theirs[i]
				}
				part += fmt.Sprintf(", ratio %.2f (%.2f to %.2f)", median(ratios), slices.Min(ratios),
					slices.Max(ratios))
			}
			parts = append(parts, part)
		}
		fmt.Fprintf(&text, "\n%-24s %s", row, strings.Join(parts, "; "))
	}
	return text.String()
}

// median returns the one in the middle, or the mean of two.
func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// began is when the clock starts of platforms that do not tell the processor's time.
var began = time.Now()
