package chart

import (
	"fmt"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A best is the store with the lowest value of a metric. The oracle does not count, as its memory is not counted, nor
// does an engine that stores nothing.
type best struct {
	r      *cell.Result // nil if no cell has the metric
	label  string
	value  float64
	others int // stores with the same value
}

func bestOf(set []*cell.Result, labels []string, kind, unit string) (b best) {
	for i, r := range set {
		m := r.Metric(kind, unit)
		store := r.Settings.Engine != "null" && r.Settings.Filter != engine.OracleFilter
		switch {
		case m == nil || !store:
		case b.r == nil || m.Value < b.value:
			b = best{r, labels[i], m.Value, 0}
		case m.Value == b.value:
			b.others++
		}
	}
	return b
}

// says returns a sentence, empty if there is no such cell.
func (b best) says(format string, args ...any) string {
	if b.r == nil {
		return ""
	}
	return b.label + " " + fmt.Sprintf(format, args...) + "."
}

// leads says that the store is the first in something, with those that share the place; empty if there is no such cell.
func (b best) leads(in string) string {
	switch {
	case b.r == nil:
		return ""
	case b.others > 0:
		return in + ": " + b.label + " and " + bench.Times(b.others, "other") + "."
	}
	return in + ": " + b.label + "."
}

// often says how many of something there are in operations: 1 block in 100 absent lookups.
func often(perOperation float64, thing, operation string) string {
	switch {
	case perOperation == 0:
		return "no " + thing + " in any " + operation
	case perOperation < 0.995:
		return "1 " + thing + " in " + digits(1/perOperation) + " " + operation + "s"
	case perOperation < 1.005:
		return "1 " + thing + " per " + operation
	}
	return digits(perOperation) + " " + thing + "s per " + operation
}

// digits shows about three digits of a number.
func digits(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func nanoseconds(ns float64) string {
	if ns >= 1000 {
		return digits(ns/1000) + " µs"
	}
	return digits(ns) + " ns"
}

// headlines says what the charts of a set tell first, by ID.
func headlines(set []*cell.Result, labels []string) map[string]string {
	heads := map[string]string{}
	for _, kind := range engine.Kinds {
		of, lookup := string(kind), string(kind)+" lookup"
		blocks := bestOf(set, labels, of, "blocks/op")
		heads["blocks-"+of] = blocks.says("reads %s", often(blocks.value, "block", lookup))
		files := bestOf(set, labels, of, "files/op")
		if files.r != nil {
			if m := files.r.Metric(of, "blocks/op"); m != nil {
				heads["funnel-"+of] = files.says("considers %s, and reads %s", often(files.value, "file", lookup),
					often(m.Value, "block", lookup))
			}
		}
		slow := bestOf(set, labels, of, "p99-ns")
		heads["latency-"+of] = slow.says("answers 99 of 100 %ss within %s", lookup, nanoseconds(slow.value))
	}
	fpr := bestOf(set, labels, "absent", "fpr")
	passed := often(fpr.value, "absent key", "probe")
	if fpr.r != nil && fpr.value == 0 { // none was seen, which does not make the rate 0
		passed = "at most " + often(fpr.r.Absent.FPR.High, "absent key", "probe")
	}
	heads["fpr"] = fpr.says("lets %s pass", passed)
	least := bestOf(set, labels, "absent", "blocks/op")
	if least.r != nil {
		if bits := least.r.Metric(cell.StoreKind, "filter-bits/key"); bits != nil {
			heads["pareto"] = least.says("reads %s with %s filter bits per key",
				often(least.value, "block", "absent lookup"), digits(bits.Value))
		}
	}
	heads["ratios"] = least.leads("Fewest blocks for an absent key")
	fast := bestOf(set, labels, "absent", "ns/op")
	heads["times"] = fast.leads("Least time for an absent key, " + nanoseconds(fast.value))
	return heads
}
