package report

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/siftkv/siftkv/internal/bench/inspect"
)

// Trace writes what is in a lookup trace as text for a terminal.
func Trace(w io.Writer, r *inspect.Trace) error {
	var out bytes.Buffer
	form := "keys"
	if r.Hashed {
		form = "hashes of keys"
	}
	fmt.Fprintf(&out, "%s: a lookup trace with %s, %s\n\n", r.Path, form, size(float64(r.Bytes)))
	fmt.Fprintf(&out, "recorded  %s, over %s", r.Start.UTC().Format(time.DateTime+" UTC"),
		r.Span.Round(time.Millisecond))
	if r.OneIn > 1 {
		fmt.Fprintf(&out, "; one key in %s", grouped(int64(r.OneIn)))
	}
	fmt.Fprintf(&out, "\nlookups   %s", grouped(r.Lookups))
	if s := r.Span.Seconds(); s > 0 {
		fmt.Fprintf(&out, ", %s per second", grouped(int64(float64(r.Lookups)/s)))
	}
	fmt.Fprintf(&out, "; %s asked for the value, %s whether it is there\n", grouped(r.Values),
		grouped(r.Lookups-r.Values))
	fmt.Fprintf(&out, "keys      %d to %d bytes, %.1f in the mean of all lookups\n", r.Sizes.Min, r.Sizes.Max,
		r.Sizes.Mean)
	fmt.Fprintf(&out, "dropped   %s\n", grouped(int64(r.Dropped)))

	g := Grid{Title: "Lookups by whether the key was ever found; top: % of them that asked for the most popular keys",
		Columns: []Column{
			{Name: "keys", Text: true}, {Name: "lookups"}, {Name: "%\u00a0of\u00a0all"}, {Name: "distinct keys"},
			{Name: "asked for\u00a0once"},
			{Name: "top 0.1\u00a0%"}, {Name: "top 1\u00a0%"}, {Name: "top 10\u00a0%"}, {Name: "top 50\u00a0%"},
		}}
	for _, p := range []struct {
		name string
		part inspect.Part
	}{{"found", r.Existing}, {"never found", r.Absent}} {
		share := absentCell
		if r.Lookups > 0 {
			share = percent(float64(p.part.Lookups) / float64(r.Lookups))
		}
		row := []Item{word(p.name), word(grouped(p.part.Lookups)), word(share), word(grouped(p.part.Keys)),
			word(grouped(p.part.Once))}
		for i := range len(g.Columns) - len(row) {
			if i < len(p.part.Top) {
				row = append(row, word(percent(p.part.Top[i].OfLookups)))
			} else {
				row = append(row, word(absentCell))
			}
		}
		g.Rows = append(g.Rows, row)
	}
	out.WriteString("\n" + g.Text())
	var warnings []string
	if r.Unfinished {
		warnings = append(warnings, "the trace has no end: its process was killed, is still recording, or the file was cut; what came after is not in it")
	}
	if r.Dropped > 0 {
		warnings = append(warnings, "lookups were dropped: the trace's writer was too slow; record one key in so many (kv.LookupTraceOptions.OneIn)")
	}
	if r.Missed > 0 {
		warnings = append(warnings, times(int(r.Missed),
			"lookup")+" did not find a key that others found: it was written or deleted meanwhile; a replay takes it as existing")
	}
	writeList(&out, "Warnings", warnings)
	_, err := out.WriteTo(w)
	return err
}
