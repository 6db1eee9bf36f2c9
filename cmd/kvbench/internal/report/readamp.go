package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
)

// ReadAmp writes a result as text for a terminal of 160 columns.
func ReadAmp(w io.Writer, r *readamp.Result) error {
	return write(w, func(out *page.Page) {
		writeSettings(out, r)
		out.Grid(storeTable(r))
		for _, kind := range engine.Kinds {
			out.Grid(phaseTable(r, kind))
		}
		writeComparisons(out, r)
		if r.Budget != nil {
			writeBudget(out, r.Budget)
		}
		identities(out, &r.Identities)
		out.List("Notes", r.Notes...)
		out.End(r.Warnings, r.WallSeconds)
	})
}

// writeSettings says what was measured, on what.
func writeSettings(out *page.Page, r *readamp.Result) {
	s, k, st := &r.Settings, &r.Keys, &r.Settings.Store
	out.Printf("Read amplification: what a lookup costs, by engine and filter\n\n")
	if k.Origin == "file" {
		out.Printf("keys      %s of %.1f bytes (%d to %d) and %s absent ones between them, from %s: %s lines, %s "+
			"empty, %s duplicates, %s outside; seed %d\n", count(k.Present), k.MeanLen, k.MinLen, k.MaxLen,
			count(k.Absent), k.Path,
			count(k.Lines), count(k.Empty), count(k.Duplicates), count(k.Outside), k.Seed)
	} else {
		out.Printf("keys      %s of %d bytes and %s absent ones between them, generated; seed %d\n",
			count(k.Present), k.MaxLen, count(k.Absent), k.Seed)
	}
	out.Printf("values    %d bytes, half compressible\n", s.ValueBytes)
	out.Printf("stores    cache %s · memtable %s · block %d bytes · compression %s · %s at once · batches of %d keys, "+
		"no fsync\n", size(st.CacheBytes), size(st.MemtableBytes), st.BlockBytes, st.Compression,
		times(st.Compactions, "compaction"), st.BatchKeys)
	if s.Compaction != "" {
		out.Printf("siftkv    compaction %s\n", s.Compaction)
	}
	if st.SiftKVIndexBytes != 0 {
		out.Printf("siftkv    index leaves of %s\n", size(st.SiftKVIndexBytes))
	}
	if st.PebbleIndexBytes != 0 {
		out.Printf("pebble    index blocks of %s\n", size(st.PebbleIndexBytes))
	}
	out.Printf("lookups   %s of each kind per row and repetition, %s; %s more timed one by one; warm-up %s\n",
		count(s.Lookups), times(s.Repetitions, "repetition"), count(s.LatencyLookups), count(s.WarmupLookups))
	out.Printf("machine   %s\n", r.Environment.String())
}

// storeTable shows the shape of every store, a line per level.
func storeTable(r *readamp.Result) *Grid {
	g := newLines("Stores: loaded in the same random order, flushed, compacted whole, reopened", 1,
		"store", "level", "files", "size", "entries", "filter", "bits/key", "index", "load s", "settle s")
	for _, s := range r.Stores {
		name, load, settle := s.Name, seconds(s.LoadSeconds), seconds(s.SettleSeconds)
		for _, l := range s.Shape.Levels {
			g.Add(name, levelName(l.Level), l.Files, size(l.Bytes), l.Entries, size(l.FilterBytes),
				bits(l.BitsPerKey()),
				size(l.IndexBytes), load, settle)
			name, load, settle = "", "", ""
		}
	}
	return g
}

func levelName(level int) string { return fmt.Sprintf("L%d", level) }

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
	return fmt.Sprintf("%s: %s lookups per row", what, count(lookups))
}

// phaseTable shows what lookups of one kind cost, a line per row.
func phaseTable(r *readamp.Result, kind engine.Kind) *Grid {
	g := newLines(phaseTitle(r, kind), 1,
		"", "bits\n/key", "files\n/op", "checks\n/op", "neg.\n/op", "true+\n/op", "false+\n/op",
		"FPR %\nmeasured [95 %]", "FPR %\ntheory", "index\n/op", "cached\nblk/op", "disk\nblk/op", "bytes\n/op",
		"ns/op\n", "p50\nns", "p99\nns")
	for i := range r.Rows {
		row := &r.Rows[i]
		p := row.Phase(kind)
		c := &p.Counters.Total
		per := func(n engine.Count) string { return perOp(n, p.Lookups) }
		measured, theory := rates(row, p)
		g.Add(row.Name, bits(row.BitsPerKey), per(c.FilesConsidered), per(c.FilterChecks), per(c.Negatives),
			per(c.TruePositives), per(c.FalsePositives), measured, theory, per(c.IndexLookups), per(c.BlocksFromCache),
			per(c.FromDisk()), per(c.BytesFromDisk), whole(p.NsPerLookup), p.Latency.P50, p.Latency.P99)
	}
	return g
}

// rates formats the measured false-positive rate and the predicted one, which
// stands alone only where there is something to compare it with.
func rates(row *readamp.Row, p *measure.Phase) (measured, theory string) {
	if p.FPR == nil {
		return absentCell, absentCell
	}
	measured = between(percent, p.FPR.Value, p.FPR.Low, p.FPR.High)
	if row.Theory == nil {
		return measured, absentCell
	}
	return measured, percent(row.Theory.FPR)
}

// writeComparisons says how many times as fast as the baseline each row is.
func writeComparisons(out *page.Page, r *readamp.Result) {
	for _, kind := range engine.Kinds {
		of := slices.DeleteFunc(slices.Clone(r.Comparisons), func(c readamp.Comparison) bool { return c.Kind != kind })
		if len(of) == 0 {
			continue
		}
		out.Printf("\n%s keys, against %s (%s ns/op):\n\n", strings.ToUpper(string(kind[:1]))+string(kind[1:]),
			of[0].Baseline, whole(of[0].BaselineNs))
		for _, c := range of {
			out.Printf("  %-32s %6s times as fast  (%s to %s within a repetition)\n",
				c.Row, ratio(c.Speedup), ratio(c.Low), ratio(c.High))
		}
	}
}
