package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/bench/measure"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/readamp"
)

// ReadAmp writes a result as text for a terminal of 160 columns.
func ReadAmp(w io.Writer, r *readamp.Result) error {
	var out bytes.Buffer
	writeSettings(&out, r)
	fmt.Fprintf(&out, "\nStores: loaded in the same random order, flushed, compacted whole, reopened\n\n%s\n",
		storeTable(r).Render())
	for _, kind := range engine.Kinds {
		fmt.Fprintf(&out, "\n%s\n\n%s\n", phaseTitle(r, kind), phaseTable(r, kind).Render())
	}
	writeComparisons(&out, r)
	if r.Budget != nil {
		writeBudget(&out, r.Budget)
	}
	writeIdentities(&out, &r.Identities)
	writeList(&out, "Notes", r.Notes)
	writeList(&out, "Warnings", r.Warnings)
	fmt.Fprintf(&out, "\n%.0f s in all\n", r.WallSeconds)
	_, err := out.WriteTo(w)
	return err
}

// writeSettings says what was measured, on what.
func writeSettings(out *bytes.Buffer, r *readamp.Result) {
	s, k, st := &r.Settings, &r.Keys, &r.Settings.Store
	fmt.Fprintf(out, "Read amplification: what a lookup costs, by engine and filter\n\n")
	if k.Origin == "file" {
		fmt.Fprintf(out, "keys      %s of %.1f bytes (%d to %d) and %s absent ones between them, from %s: %s lines, %s empty, %s duplicates, %s outside; seed %d\n",
			grouped(int64(k.Present)), k.MeanLen, k.MinLen, k.MaxLen, grouped(int64(k.Absent)), k.Path,
			grouped(int64(k.Lines)), grouped(int64(k.Empty)), grouped(int64(k.Duplicates)), grouped(int64(k.Outside)),
			k.Seed)
	} else {
		fmt.Fprintf(out, "keys      %s of %d bytes and %s absent ones between them, generated; seed %d\n",
			grouped(int64(k.Present)), k.MaxLen, grouped(int64(k.Absent)), k.Seed)
	}
	fmt.Fprintf(out, "values    %d bytes, half compressible\n", s.ValueBytes)
	fmt.Fprintf(out, "stores    cache %s · memtable %s · block %d bytes · compression %s · %s at once · batches of %d keys, no fsync\n",
		bench.Size(st.CacheBytes), bench.Size(st.MemtableBytes), st.BlockBytes, st.Compression,
		times(st.Compactions, "compaction"), st.BatchKeys)
	if s.Compaction != "" {
		fmt.Fprintf(out, "siftkv    compaction %s\n", s.Compaction)
	}
	if st.SiftKVIndexBytes != 0 {
		fmt.Fprintf(out, "siftkv    index leaves of %s\n", bench.Size(st.SiftKVIndexBytes))
	}
	if st.PebbleIndexBytes != 0 {
		fmt.Fprintf(out, "pebble    index blocks of %s\n", bench.Size(st.PebbleIndexBytes))
	}
	fmt.Fprintf(out, "lookups   %s of each kind per row and repetition, %s; %s more timed one by one; warm-up %s\n",
		grouped(int64(s.Lookups)), times(s.Repetitions, "repetition"), grouped(int64(s.LatencyLookups)),
		grouped(int64(s.WarmupLookups)))
	fmt.Fprintf(out, "machine   %s\n", r.Environment.String())
}

// storeTable shows the shape of every store, a line per level.
func storeTable(r *readamp.Result) table.Writer {
	t := newTable(1, table.Row{"store", "level", "files", "size", "entries", "filter", "bits/key", "index", "load s",
		"settle s"})
	for _, s := range r.Stores {
		for i, l := range s.Shape.Levels {
			row := table.Row{"", "", "", "", "", "", "", "", "", ""}
			if i == 0 {
				row[0], row[8], row[9] = s.Name, seconds(s.LoadSeconds), seconds(s.SettleSeconds)
			}
			row[1], row[2], row[3] = fmt.Sprintf("L%d", l.Level), grouped(int64(l.Files)),
				bench.Size(l.Bytes).String()
			row[4], row[5], row[6] = grouped(l.Entries), bench.Size(l.FilterBytes).String(), bits(l.BitsPerKey())
			row[7] = bench.Size(l.IndexBytes).String()
			t.AppendRow(row)
		}
	}
	return t
}

func seconds(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// bits formats bits per key.
func bits(x float64) string {
	if x == 0 {
		return absentCell
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// phaseTitle names the lookups of a table.
func phaseTitle(r *readamp.Result, kind engine.Kind) string {
	lookups := 0
	if len(r.Rows) > 0 {
		lookups = r.Rows[0].Phase(kind).Lookups
	}
	what := "Existing keys"
	switch {
	case kind == engine.Absent && r.Keys.Replay != nil:
		what = "Absent keys of the trace"
	case kind == engine.Absent:
		what = "Absent keys, between existing ones"
	}
	return fmt.Sprintf("%s: %s lookups per row", what, grouped(int64(lookups)))
}

// phaseTable shows what lookups of one kind cost, a line per row.
func phaseTable(r *readamp.Result, kind engine.Kind) table.Writer {
	t := newTable(1, table.Row{
		"", "bits\n/key", "files\n/op", "checks\n/op", "neg.\n/op", "true+\n/op", "false+\n/op",
		"FPR %\nmeasured [95 %]", "FPR %\ntheory", "index\n/op", "cached\nblk/op", "disk\nblk/op", "bytes\n/op",
		"ns/op\n", "p50\nns", "p99\nns",
	})
	for i := range r.Rows {
		row := &r.Rows[i]
		p := row.Phase(kind)
		c, n := &p.Counters.Total, p.Lookups
		measured, theory := rates(row, p)
		t.AppendRow(table.Row{
			row.Name, bits(row.BitsPerKey), perOp(c.FilesConsidered, n), perOp(c.FilterChecks, n),
			perOp(c.Negatives, n), perOp(c.TruePositives, n), perOp(c.FalsePositives, n),
			measured, theory, perOp(c.IndexLookups, n),
			perOp(c.BlocksFromCache, n), perOp(fromDisk(c), n), perOp(c.BytesFromDisk, n),
			whole(p.NsPerLookup), grouped(p.Latency.P50), grouped(p.Latency.P99),
		})
	}
	return t
}

// fromDisk returns the blocks read from files. An engine that does not count
// index leaves by themselves has them among the others.
func fromDisk(t *engine.Tally) engine.Count {
	if t.LeavesFromDisk.Known() {
		return t.BlocksFromDisk.Plus(t.LeavesFromDisk)
	}
	return t.BlocksFromDisk
}

// rates formats the measured false-positive rate and the predicted one, which
// stands alone only where there is something to hold against it.
func rates(row *readamp.Row, p *measure.Phase) (measured, theory string) {
	if p.FPR == nil {
		return absentCell, absentCell
	}
	measured = interval(p.FPR.Value, p.FPR.Low, p.FPR.High)
	if row.Theory == nil {
		return measured, absentCell
	}
	return measured, percent(row.Theory.FPR)
}

// writeComparisons says how many times as fast as the baseline each row is.
func writeComparisons(out *bytes.Buffer, r *readamp.Result) {
	for _, kind := range engine.Kinds {
		of := slices.DeleteFunc(slices.Clone(r.Comparisons), func(c readamp.Comparison) bool { return c.Kind != kind })
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s keys, against %s (%s ns/op):\n\n", strings.ToUpper(string(kind[:1]))+string(kind[1:]),
			of[0].Baseline, whole(of[0].BaselineNs))
		for _, c := range of {
			fmt.Fprintf(out, "  %-32s %6s times as fast  (%s to %s within a repetition)\n",
				c.Row, ratio(c.Speedup), ratio(c.Low), ratio(c.High))
		}
	}
}

// writeIdentities says which equations hold, and shows those that do not.
func writeIdentities(out *bytes.Buffer, ids *measure.Identities) {
	verdict := "all hold"
	if n := len(ids.Failures); n > 0 {
		verdict = grouped(int64(n)) + " DO NOT HOLD"
	}
	fmt.Fprintf(out, "\nIdentities: %s checked, %s (%s more need a counter that the engine does not keep)\n\n",
		grouped(int64(ids.Checked)), verdict, grouped(int64(ids.Unknown)))
	for _, rule := range ids.Rules {
		fmt.Fprintf(out, "  %s\n", rule)
	}
	const shown = 10
	for _, f := range ids.Failures[:min(shown, len(ids.Failures))] {
		fmt.Fprintf(out, "  BROKEN: %s\n", f)
	}
}

// writeList writes a titled list, wrapped by the terminal.
func writeList(out *bytes.Buffer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n\n", title)
	for _, item := range items {
		fmt.Fprintf(out, "  - %s\n", item)
	}
}
