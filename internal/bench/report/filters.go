package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/siftkv/siftkv/internal/bench/filters"
)

// Filters writes a result as text for a terminal of 160 columns.
func Filters(w io.Writer, r *filters.Result) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Filters on their own: space, errors, time; %s absent probes, medians of %s, seed %d\n\nmachine   %s\n",
		grouped(int64(r.Probes)), times(r.Repetitions, "repetition"), r.Seed, r.Environment.String())
	for _, t := range r.Tables {
		fmt.Fprintf(&out, "\n%s keys\n\n%s\n", grouped(int64(t.Keys)), filterTable(t).Render())
	}
	writeList(&out, "Notes", []string{
		"FPR: share of absent keys that the filter lets pass, with its 95 % Wilson interval. All keys were asked for, and none was denied.",
		fmt.Sprintf("ns: per probe, a function call through a pointer included. small: a filter of %s keys, which the CPU caches. %d files: one absent key asked of %d filters that share the keys.",
			grouped(filters.SmallKeys), filters.ManyFilters, filters.ManyFilters),
		"Pebble, bits-and-blooms and seiflotfy take bytes: they get the eight bytes of the hash and hash them again, which is in their times.",
		"x pebble: time of Pebble's bloom(10) for an absent key over this filter's.",
	})
	writeList(&out, "Warnings", r.Environment.Warnings)
	fmt.Fprintf(&out, "\n%.0f s in all\n", r.WallSeconds)
	_, err := out.WriteTo(w)
	return err
}

func filterTable(t filters.Table) table.Writer {
	w := newTable(1, table.Row{"filter", "bits/key", "theory", "FPR % [95 %]", "theory", "build ns", "build B",
		"present ns", "absent ns", "small", "small absent", fmt.Sprintf("%d files", filters.ManyFilters), "x pebble"})
	for _, r := range t.Rows {
		row := table.Row{
			r.Name, strconv.FormatFloat(r.BitsPerKey, 'f', 2, 64), absentCell,
			fmt.Sprintf("%s [%s, %s]", percent(r.FPR), percent(r.FPRLow), percent(r.FPRHigh)), absentCell,
			nanos(r.BuildNs), strconv.FormatFloat(r.BuildBytes, 'f', 1, 64),
			nanos(r.PresentNs), nanos(r.AbsentNs), nanos(r.SmallPresentNs), nanos(r.SmallAbsentNs),
			nanos(r.ManyAbsentNs), absentCell,
		}
		if r.TheoryBits > 0 {
			row[2], row[4] = strconv.FormatFloat(r.TheoryBits, 'f', 2, 64), percent(r.TheoryFPR)
		}
		if r.FasterThanPebble > 0 {
			row[12] = ratio(r.FasterThanPebble)
		}
		w.AppendRow(row)
	}
	return w
}

// nanos formats a time per operation.
func nanos(x float64) string {
	if x >= 100 {
		return whole(x)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}
