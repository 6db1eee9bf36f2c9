package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ranges"
)

// Ranges writes a result as text for a terminal of 160 columns.
func Ranges(w io.Writer, r *ranges.Result) error {
	return write(w, func(out *page.Page) {
		out.Printf("Range filters on their own: space, errors, time; up to %s empty ranges of each kind, medians of "+
			"%s, seed %d\n\nmachine   %s\n",
			count(r.Probes), times(r.Repetitions, "repetition"), r.Seed, r.Environment.String())
		for _, t := range r.Tables {
			out.Grid(rangeFilterTable(t))
			out.Grid(rangeRateTable(t))
		}
		out.List("Notes",
			"% of ranges without a key that the filter lets pass, with their 95 % Wilson interval. All keys were "+
				"asked for by the narrowest range, and none was denied.",
			"theory: of random keys, and of narrow ranges anywhere among them.",
			"gap: mean distance of two keys; unit: 1 in the first eight bytes, taken as a number.",
			"x blocked: time to build over that of blocked:10 for the same keys, their hashes included. query ns: of "+
				"the first kind of ranges.")
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

func rangeFilterTable(t ranges.Table) *Grid {
	g := newLines(fmt.Sprintf("%s: %s keys of %s bytes", t.Set, count(t.Keys), fixed(t.KeyBytes, 1)), 1, "filter",
		"bits/key", "theory", "theory %", "build ns", "x blocked", "query ns")
	for _, r := range t.Rows {
		query := absentCell
		if len(r.Rates) > 0 {
			query = nanos(r.Rates[0].Ns)
		}
		g.Add(r.Name, fixed(r.BitsPerKey, 2), fixed(r.TheoryBits, 2), percent(r.TheoryRate), nanos(r.BuildNs),
			ratio(r.BuildNs/r.PointNs), query)
	}
	return g
}

// rangeRateTable has a line for each kind of ranges and a column for each filter.
func rangeRateTable(t ranges.Table) *Grid {
	names := []string{"ranges", "asked"}
	for _, r := range t.Rows {
		names = append(names, r.Name+" %")
	}
	g := newLines("", 1, names...)
	for i := range t.Rows[0].Rates {
		first := t.Rows[0].Rates[i]
		line := []any{first.Ranges, count(first.Asked)}
		for _, r := range t.Rows {
			rate := r.Rates[i]
			text := absentCell
			if rate.Asked > 0 {
				text = between(percent, rate.Rate, rate.Low, rate.High)
			}
			line = append(line, text)
		}
		g.Add(line...)
	}
	return g
}

// RangesCSV writes a result as tidy data: a line for each filter and kind of ranges.
func RangesCSV(w io.Writer, r *ranges.Result) error {
	out := csv.NewWriter(w)
	float := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	// A writer keeps its first error for Flush.
	_ = out.Write([]string{"set", "keys", "filter", "bits_per_key", "theory_bits_per_key", "theory_rate",
		"build_ns_per_key", "point_build_ns_per_key", "ranges", "asked", "passed", "rate", "low", "high", "ns"})
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			for _, rate := range row.Rates {
				_ = out.Write([]string{t.Set, strconv.Itoa(t.Keys), row.Name, float(row.BitsPerKey),
					float(row.TheoryBits), float(row.TheoryRate), float(row.BuildNs), float(row.PointNs), rate.Ranges,
					strconv.Itoa(rate.Asked), strconv.Itoa(rate.Passed), float(rate.Rate), float(rate.Low),
					float(rate.High), float(rate.Ns)})
			}
		}
	}
	out.Flush()
	return out.Error()
}
