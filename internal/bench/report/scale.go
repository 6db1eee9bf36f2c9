package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/siftkv/siftkv/internal/bench/compare"
)

// Scale writes a result as text.
func Scale(w io.Writer, r *compare.ScaleResult) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Cost by number of keys: keys of %d bytes, values of %d bytes, compression %s, cache %g of the data, medians of %s of %g s, seed %d\n\nmachine   %s\n",
		r.KeyBytes, r.ValueBytes, r.Store.Compression, r.CacheShare, times(r.Repetitions, "repetition"), r.Seconds,
		r.Seed, r.Environment.String())
	fmt.Fprintf(&out, "\nNanoseconds of processor time per lookup [least, most]\n\n%s\n", scaleTimes(r).Render())
	fmt.Fprintf(&out, "\nBytes per key\n\n%s\n", scaleMemory(r).Render())
	writeList(&out, "Notes", []string{
		"one load: a load from memory whose address comes from the load before, at random over as many bytes as filters and indexes take (all resident memory if the engine does not say).",
		"growth: how much longer an absent lookup takes than with the fewest keys, in such loads of this size.",
		"filters, indexes: as the store counts them. other: live heap beside them, without cache and memtable. pinned: anonymous memory of such a process after a garbage collection.",
		"RSS: memory of the process after the lookups, with its cache, without that of a process with no store.",
	})
	writeList(&out, "Warnings", r.Environment.Warnings)
	fmt.Fprintf(&out, "\n%.0f s in all\n", r.WallSeconds)
	_, err := out.WriteTo(w)
	return err
}

func scaleTimes(r *compare.ScaleResult) table.Writer {
	t := newTable(1, table.Row{"engine", "keys", "load s", "files", "absent", "existing", "zipfian", "one load",
		"growth"})
	var first compare.Point
	for i, p := range r.Points {
		if i == 0 || p.Engine != first.Engine {
			first = p
		}
		growth := absentCell
		if p.Keys != first.Keys && p.LoadNs > 0 {
			growth = fixed((p.Absent.Median - first.Absent.Median) / p.LoadNs)
		}
		t.AppendRow(table.Row{
			p.Engine, grouped(int64(p.Keys)), figureCell(p.LoadSeconds), grouped(int64(p.Files)),
			timeCell(p.Absent), timeCell(p.Existing), timeCell(p.Zipfian), nanos(p.LoadNs), growth,
		})
	}
	return t
}

// timeCell formats a time with the least and the most.
func timeCell(x compare.Time) string {
	return fmt.Sprintf("%s [%s, %s]", nanos(x.Median), nanos(x.Low), nanos(x.High))
}

func scaleMemory(r *compare.ScaleResult) table.Writer {
	t := newTable(1, table.Row{"engine", "keys", "filters", "indexes", "other", "pinned", "RSS", "cache", "on disk"})
	for _, p := range r.Points {
		per := func(bytes int64) string { return fixed(float64(bytes) / float64(p.Keys)) }
		filters, indexes := per(p.Filters), per(p.Indexes)
		if p.Filters == 0 && p.Indexes == 0 {
			filters, indexes = absentCell, absentCell
		}
		t.AppendRow(table.Row{p.Engine, grouped(int64(p.Keys)), filters, indexes, per(p.Other), per(p.Pinned),
			per(p.Resident), per(p.CacheBytes), per(p.DiskBytes)})
	}
	return t
}
