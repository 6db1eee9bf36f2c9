package objects

import (
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Text writes a result as text for a terminal of 160 columns.
func Text(w io.Writer, r *Result) error {
	return page.Write(w, func(out *page.Page) {
		out.Printf("A store in an object store (%s): %s keys of %d bytes, values of %d bytes, files of %s, "+
			"compression %s, seed %d\n\nprices    $%g per 1,000 GET, $%g per 1,000 PUT and LIST\nmachine   %s\n",
			r.Origin, page.Count(r.Keys), r.KeySize, r.ValueSize, page.Size(r.TargetFile), r.Compression, r.Seed,
			r.GetPrice, r.PutPrice, r.Environment.String())
		for _, shape := range []string{Settled, Young} {
			out.Grid(objectLookups(r, shape))
		}
		out.Grid(objectOperations(r))
		notes := []string{
			"GET: requests per lookup; every answer was checked. $/M: of requests, per million lookups.",
			"cache: of blocks, filled by lookups before. Filters and indexes are in memory beside it.",
			"trips: the longest chain of requests of which each began after the one before had ended. It and ms are " +
				"with an injected delay of " + r.Delay.String() + " for each request; lookups had none.",
		}
		if r.Memory > 0 {
			notes = append(notes, fmt.Sprintf("short: a memory limit of %s, most of which memtables take: files "+
				"whose filters find no room are read as if they had none.", page.Size(r.Memory)))
		}
		for _, op := range r.Operations {
			if op.Name == Poll && op.Shape == Settled {
				const polls = 365.25 * 24 * 3600 / 12
				notes = append(notes, fmt.Sprintf("a view that polls each second costs $%s a month.",
					page.Fixed(op.DollarsPerMillion*polls/1e6, 2)))
			}
		}
		out.List("Notes", notes...)
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

// objectLookups shows what lookups cost in one shape, a line per filter and cache.
func objectLookups(r *Result, shape string) *page.Grid {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Shape != shape })
	title := "Lookups, settled"
	if shape == Young {
		title = fmt.Sprintf("Lookups, %d young files in level 0, each of a hundredth of the keys", r.Young)
	}
	if len(rows) > 0 {
		title += fmt.Sprintf(" (%s in all)", page.Times(rows[0].Files, "file"))
	}
	g := page.NewLines(title, 2, "filter\n", "cache\n", "bits\n/key", "absent\nGET", "absent\nKiB", "absent\n$/M",
		"present\nGET", "present\nKiB", "present\n$/M", "zipfian\nGET", "zipfian\nKiB", "zipfian\n$/M")
	for _, row := range rows {
		line := []any{row.Filter, row.CacheText(), page.Bits(row.BitsPerKey)}
		for _, c := range []Cost{row.Absent, row.Present, row.Zipfian} {
			n := float64(c.Lookups)
			line = append(line, page.ThreeDigits(float64(c.Traffic.Gets)/n),
				page.ThreeDigits(kib(c.Traffic.BytesReceived)/n), page.ThreeDigits(c.DollarsPerMillion))
		}
		g.Add(line...)
	}
	return g
}

// objectOperations shows what everything else costs.
func objectOperations(r *Result) *page.Grid {
	g := page.NewLines("Operations, "+r.Operator+", no cache", 2, "", "store\n", "files\n", "times\n", "GET\n/op",
		"PUT\n/op", "LIST\n/op", "KiB\nin /op", "KiB\nout /op", "$/M\n", "trips\n", "most\ntrips", "ms\n")
	for _, op := range r.Operations {
		per := func(x float64) string { return page.ThreeDigits(x / float64(op.Operations)) }
		t := op.Traffic
		g.Add(op.Name, op.Shape, op.Files, op.Operations, per(float64(t.Gets)), per(float64(t.Puts)),
			per(float64(t.Lists)), per(kib(t.BytesReceived)), per(kib(t.BytesSent)),
			page.ThreeDigits(op.DollarsPerMillion), page.Figure(op.RoundTrips), op.MostRoundTrips,
			page.Figure(op.Milliseconds))
	}
	return g
}

func kib(bytes int64) float64 { return float64(bytes) / 1024 }
