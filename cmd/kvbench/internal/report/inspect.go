package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/inspect"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Inspect writes a result as text for a terminal. If limit is not 0, it shows at most so
// many files.
func Inspect(w io.Writer, r *inspect.Result, limit int) error {
	return write(w, func(out *page.Page) {
		out.Printf("%s: %s\n", r.Path, times(len(r.Files), "sorted file"))
		if len(r.Shape.Levels) > 0 {
			g := newGrid("Levels", 1, "level", "files", "size", "entries", "filter", "bits /entry", "index")
			for _, l := range append(r.Shape.Levels, r.Shape.Total()) {
				name := levelName(l.Level)
				if l.Level < 0 {
					name = "all"
				}
				g.Add(name, l.Files, size(l.Bytes), l.Entries, size(l.FilterBytes), bits(l.BitsPerKey()),
					size(l.IndexBytes))
			}
			out.Grid(g)
		}
		if r.Blobs != nil {
			out.Grid(blobGrid(r.Blobs))
		}
		shown := r.Files
		if limit > 0 && len(shown) > limit {
			shown = shown[:limit]
		}
		out.Grid(fileGrid(shown))
		if n := len(r.Files) - len(shown); n > 0 {
			out.Printf("\n%s more; --files 0 shows all\n", count(n))
		}
		for _, f := range r.Files {
			if f.Damage != "" {
				out.Printf("\n%s: the filter cannot be used: %s\n", f.Name, f.Damage)
			}
		}
		writeBuckets(out, fmt.Sprintf("Data blocks of %s, bytes in the file", times(r.Walked, "file")), r.Blocks.Stored)
		writeBuckets(out, "The same, bytes in memory", r.Blocks.Decoded)
	})
}

// blobGrid shows what blob files take, and what of it is needed.
func blobGrid(b *inspect.Blobs) *Grid {
	g := newGrid("Blob files", 0, "files", "size", "values", "referred to", "size", "above the last level", "garbage")
	g.Add(b.Files, size(b.Bytes), b.Records, b.LiveRecords, size(int64(b.LiveBytes)), size(int64(b.HiddenBytes)),
		size(int64(b.Garbage)))
	return g
}

// fileGrid shows a line per file.
func fileGrid(files []inspect.File) *Grid {
	g := newGrid("Files", 2, "file", "filter", "size", "entries", "blocks", "bytes /block", "filter bits/key",
		"lets\u00a0pass\u00a0% [95\u00a0%]", "theory %", "index bytes", "index leaves", "compression")
	g.Columns[11].Text = true
	for _, f := range files {
		filter, passed, theory, perBlock := f.Filter, absentCell, absentCell, absentCell
		if f.Passed != nil {
			passed = between(percent, f.Passed.Value, f.Passed.Low, f.Passed.High)
		}
		if f.Theory > 0 {
			theory = percent(f.Theory)
		}
		if f.DataBlocks > 0 {
			perBlock = whole(float64(f.DataBytes) / float64(f.DataBlocks))
		}
		if filter == "" {
			filter = absentCell
		}
		g.Add(f.Name, filter, size(f.Bytes), f.Entries, f.DataBlocks, perBlock, bits(f.BitsPerKey), passed, theory,
			f.IndexBytes, f.IndexLeaves, f.Compression)
	}
	return g
}

// writeBuckets draws a histogram.
func writeBuckets(out *page.Page, title string, buckets []inspect.Bucket) {
	most := 0
	for _, b := range buckets {
		most = max(most, b.Blocks)
	}
	if most == 0 {
		return
	}
	out.Printf("\n%s\n\n", title)
	const width = 50
	for _, b := range buckets {
		bar := strings.Repeat("█", (b.Blocks*width+most-1)/most)
		line := fmt.Sprintf("%7s to %-7s %9s  %s", count(b.From), count(b.To-1), count(b.Blocks), bar)
		out.Printf("  %s\n", strings.TrimRight(line, " "))
	}
}
