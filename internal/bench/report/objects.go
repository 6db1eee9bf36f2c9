package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/bench/objects"
)

// Objects writes a result as text for a terminal of 160 columns.
func Objects(w io.Writer, r *objects.Result) error {
	return write(w, func(out *page) {
		out.printf("A store in an object store (%s): %s keys of %d bytes, values of %d bytes, files of %s, "+
			"compression %s, seed %d\n\nprices    $%g per 1,000 GET, $%g per 1,000 PUT and LIST\nmachine   %s\n",
			r.Origin, count(r.Keys), r.KeySize, r.ValueSize, size(r.TargetFile), r.Compression, r.Seed, r.GetPrice,
			r.PutPrice, r.Environment.String())
		for _, shape := range []string{objects.Settled, objects.Young} {
			out.grid(objectLookups(r, shape))
		}
		out.grid(objectOperations(r))
		notes := []string{
			"GET: requests per lookup; every answer was checked. $/M: of requests, per million lookups.",
			"cache: of blocks, filled by lookups before. Filters and indexes are in memory beside it.",
			"trips: the longest chain of requests of which each began after the one before had ended. It and ms are " +
				"with an injected delay of " + r.Delay.String() + " for each request; lookups had none.",
		}
		if r.Memory > 0 {
			notes = append(notes, fmt.Sprintf("short: a memory limit of %s, most of which memtables take: files "+
				"whose filters find no room are read as if they had none.", size(r.Memory)))
		}
		for _, op := range r.Operations {
			if op.Name == objects.Poll && op.Shape == objects.Settled {
				const polls = 365.25 * 24 * 3600 / 12
				notes = append(notes, fmt.Sprintf("a view that polls each second costs $%s a month.",
					fixed(op.DollarsPerMillion*polls/1e6, 2)))
			}
		}
		out.list("Notes", notes...)
		out.end(r.Environment.Warnings, r.WallSeconds)
	})
}

// objectLookups shows what lookups cost in one shape, a line per filter and cache.
func objectLookups(r *objects.Result, shape string) *Grid {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row objects.Row) bool { return row.Shape != shape })
	title := "Lookups, settled"
	if shape == objects.Young {
		title = fmt.Sprintf("Lookups, %d young files in level 0, each of a hundredth of the keys", r.Young)
	}
	if len(rows) > 0 {
		title += fmt.Sprintf(" (%s in all)", times(rows[0].Files, "file"))
	}
	g := newLines(title, 2, "filter\n", "cache\n", "bits\n/key", "absent\nGET", "absent\nKiB", "absent\n$/M",
		"present\nGET", "present\nKiB", "present\n$/M", "zipfian\nGET", "zipfian\nKiB", "zipfian\n$/M")
	for _, row := range rows {
		line := []any{row.Filter, row.CacheText(), bits(row.BitsPerKey)}
		for _, c := range []objects.Cost{row.Absent, row.Present, row.Zipfian} {
			n := float64(c.Lookups)
			line = append(line, threeDigits(float64(c.Traffic.Gets)/n), threeDigits(kib(c.Traffic.BytesReceived)/n),
				threeDigits(c.DollarsPerMillion))
		}
		g.add(line...)
	}
	return g
}

// objectOperations shows what everything else costs.
func objectOperations(r *objects.Result) *Grid {
	g := newLines("Operations, "+r.Operator+", no cache", 2, "", "store\n", "files\n", "times\n", "GET\n/op",
		"PUT\n/op", "LIST\n/op", "KiB\nin /op", "KiB\nout /op", "$/M\n", "trips\n", "most\ntrips", "ms\n")
	for _, op := range r.Operations {
		per := func(x float64) string { return threeDigits(x / float64(op.Operations)) }
		t := op.Traffic
		g.add(op.Name, op.Shape, op.Files, op.Operations, per(float64(t.Gets)), per(float64(t.Puts)),
			per(float64(t.Lists)), per(kib(t.BytesReceived)), per(kib(t.BytesSent)), threeDigits(op.DollarsPerMillion),
			figure(op.RoundTrips), op.MostRoundTrips, figure(op.Milliseconds))
	}
	return g
}

func kib(bytes int64) float64 { return float64(bytes) / 1024 }

// threeDigits formats a number with three digits or more, however small: filters of many bits let
// few requests through. Zero is "0".
func threeDigits(x float64) string {
	if x == 0 {
		return "0"
	}
	return steps(x, step{1000, grouping}, step{10, 1}, step{1, 2}, step{0.1, 3}, step{0.01, 4}, step{0.001, 5},
		step{0, 6})
}
