package chart

import (
	"fmt"
	"math"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
)

// A best is the store that has least of a metric. The oracle, whose memory is not counted, is none.
type best struct {
	r     *cell.Result // nil if no cell has the metric
	label string
	value float64
}

func bestOf(set []*cell.Result, labels []string, kind, unit string) (b best) {
	for i, r := range set {
		m := r.Metric(kind, unit)
		store := r.Settings.Engine != "null" && r.Settings.Filter != engine.OracleFilter
		if m != nil && store && (b.r == nil || m.Value < b.value) {
			b = best{r, labels[i], m.Value}
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

// nanoseconds shows a time.
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
	heads["fpr"] = fpr.says("lets %s pass", often(fpr.value, "absent key", "probe"))
	least := bestOf(set, labels, "absent", "blocks/op")
	if least.r != nil {
		if bits := least.r.Metric(cell.StoreKind, "filter-bits/key"); bits != nil {
			heads["pareto"] = least.says("reads %s with %s filter bits per key",
				often(least.value, "block", "absent lookup"), digits(bits.Value))
		}
	}
	heads["ratios"] = least.says("reads the fewest blocks for an absent key")
	fast := bestOf(set, labels, "absent", "ns/op")
	heads["times"] = fast.says("takes the least time for an absent key: %s", nanoseconds(fast.value))
	return heads
}

// leastOf says which row and column of a pivot table has the least of all metrics.
func leastOf(t *results.Table) string {
	least, text := math.Inf(1), ""
	for row, places := range t.Places {
		for column, list := range places {
			for metric, p := range list {
				if p.Cells > 0 && p.Median < least {
					least = p.Median
					text = fmt.Sprintf("Least: %s, %s: %s.", t.RowKeys[row], t.ColumnName(column, metric),
						digits(least))
				}
			}
		}
	}
	return text
}
