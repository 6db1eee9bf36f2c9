package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/siftkv/siftkv/internal/bench/inspect"
)

// Inspect writes a result as text for a terminal; of more files than limit the largest
// part is left out, unless limit is 0.
func Inspect(w io.Writer, r *inspect.Result, limit int) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s\n", r.Path, times(len(r.Files), "sorted file"))
	if len(r.Shape.Levels) > 0 {
		g := Grid{Title: "Levels", Columns: []Column{{Name: "level", Text: true}, {Name: "files"}, {Name: "size"},
			{Name: "entries"}, {Name: "filter"}, {Name: "bits /entry"}, {Name: "index"}}}
		for _, l := range append(r.Shape.Levels, r.Shape.Total()) {
			name := fmt.Sprintf("L%d", l.Level)
			if l.Level < 0 {
				name = "all"
			}
			g.Rows = append(g.Rows, []Item{word(name), word(grouped(int64(l.Files))), word(size(float64(l.Bytes))),
				word(grouped(l.Entries)),
				word(size(float64(l.FilterBytes))), word(bits(l.BitsPerKey())), word(size(float64(l.IndexBytes)))})
		}
		out.WriteString("\n" + g.Text())
	}
	shown := r.Files
	if limit > 0 && len(shown) > limit {
		shown = shown[:limit]
	}
	g := fileGrid(shown)
	out.WriteString("\n" + g.Text())
	if n := len(r.Files) - len(shown); n > 0 {
		fmt.Fprintf(&out, "\n%s more; --files 0 shows all\n", grouped(int64(n)))
	}
	for _, f := range r.Files {
		if f.Damage != "" {
			fmt.Fprintf(&out, "\n%s: the filter cannot be used: %s\n", f.Name, f.Damage)
		}
	}
	writeBuckets(&out, fmt.Sprintf("Data blocks of %s, bytes in the file", times(r.Walked, "file")), r.Blocks.Stored)
	writeBuckets(&out, "The same, bytes in memory", r.Blocks.Decoded)
	_, err := out.WriteTo(w)
	return err
}

// fileGrid shows a line per file.
func fileGrid(files []inspect.File) Grid {
	g := Grid{Title: "Files", Columns: []Column{
		{Name: "file", Text: true}, {Name: "filter", Text: true}, {Name: "size"}, {Name: "entries"}, {Name: "blocks"},
		{Name: "bytes /block"},
		{Name: "filter bits/key"}, {Name: "lets\u00a0pass\u00a0% [95\u00a0%]"}, {Name: "theory %"},
		{Name: "index bytes"}, {Name: "index leaves"}, {Name: "compression", Text: true},
	}}
	for _, f := range files {
		passed, theory, perBlock := absentCell, absentCell, absentCell
		if f.Passed != nil {
			passed = interval(f.Passed.Value, f.Passed.Low, f.Passed.High)
		}
		if f.Theory > 0 {
			theory = percent(f.Theory)
		}
		if f.DataBlocks > 0 {
			perBlock = whole(float64(f.DataBytes) / float64(f.DataBlocks))
		}
		filter := f.Filter
		if filter == "" {
			filter = absentCell
		}
		g.Rows = append(g.Rows, []Item{
			word(f.Name), word(filter), word(size(float64(f.Bytes))), word(grouped(int64(f.Entries))),
			word(grouped(int64(f.DataBlocks))), word(perBlock),
			word(bits(f.BitsPerKey)), word(passed), word(theory), word(grouped(int64(f.IndexBytes))),
			word(grouped(int64(f.IndexLeaves))), word(f.Compression),
		})
	}
	return g
}

// writeBuckets draws a histogram.
func writeBuckets(out *bytes.Buffer, title string, buckets []inspect.Bucket) {
	most := 0
	for _, b := range buckets {
		most = max(most, b.Blocks)
	}
	if most == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n\n", title)
	const width = 50
	for _, b := range buckets {
		bar := strings.Repeat("█", (b.Blocks*width+most-1)/most)
		fmt.Fprintf(out, "  %s\n", strings.TrimRight(fmt.Sprintf("%7s to %-7s %9s  %s", grouped(b.From),
			grouped(b.To-1), grouped(int64(b.Blocks)), bar), " "))
	}
}
