package report

import (
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Scale writes a result as text.
func Scale(w io.Writer, r *compare.ScaleResult) error {
	return write(w, func(out *page.Page) {
		out.Printf("Cost by number of keys: keys of %d bytes, values of %d bytes, compression %s, cache %g of the "+
			"data, medians of %s of %g s, seed %d\n\nmachine   %s\n", r.KeySize, r.ValueSize, r.Store.Compression,
			r.CacheShare,
			times(r.Repetitions, "repetition"), r.Seconds, r.Seed, r.Environment.String())
		out.Grid(scaleTimes(r))
		out.Grid(scaleMemory(r))
		out.List("Notes",
			"one load: a load from memory whose address comes from the load before, at random over as many bytes as "+
				"filters and indexes take (all resident memory if the engine does not say).",
			"growth: how much longer an absent lookup takes than with the fewest keys, in such loads of this size.",
			"filters, indexes: as the store counts them. other: live heap beside them, without cache and memtable. "+
				"pinned: anonymous memory of such a process after a garbage collection.",
			"RSS: memory of the process after the lookups, with its cache, without that of a process with no store.")
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

func scaleTimes(r *compare.ScaleResult) *Grid {
	g := newLines("Nanoseconds of processor time per lookup [least, most]", 1,
		"engine", "keys", "load s", "files", "absent", "existing", "zipfian", "one load", "growth")
	ns := func(t compare.Time) string { return between(nanos, t.Median, t.Low, t.High) }
	var first compare.Point
	for i, p := range r.Points {
		if i == 0 || p.Engine != first.Engine {
			first = p
		}
		growth := absentCell
		if p.Keys != first.Keys && p.LoadNs > 0 {
			growth = fixed((p.Absent.Median-first.Absent.Median)/p.LoadNs, 2)
		}
		g.Add(p.Engine, p.Keys, figure(p.LoadSeconds), p.Files, ns(p.Absent), ns(p.Existing), ns(p.Zipfian),
			nanos(p.LoadNs), growth)
	}
	return g
}

func scaleMemory(r *compare.ScaleResult) *Grid {
	g := newLines("Bytes per key", 1,
		"engine", "keys", "filters", "indexes", "other", "pinned", "RSS", "cache", "on disk")
	for _, p := range r.Points {
		per := func(bytes int64) string { return fixed(float64(bytes)/float64(p.Keys), 2) }
		filters, indexes := per(p.Filters), per(p.Indexes)
		if p.Filters == 0 && p.Indexes == 0 {
			filters, indexes = absentCell, absentCell
		}
		g.Add(p.Engine, p.Keys, filters, indexes, per(p.Other), per(p.Pinned), per(p.Resident), per(p.CacheBytes),
			per(p.DiskBytes))
	}
	return g
}
