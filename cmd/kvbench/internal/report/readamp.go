package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// ReadAmp writes the cells of a run of package readamp as text for a terminal of 160 columns.
func ReadAmp(w io.Writer, set []*cell.Result) error {
	rows, trees := set, []*cell.Result(nil)
	if n := len(set) - 2; n > 0 && set[n].Settings.Shape == cell.Grown {
		rows, trees = set[:n], set[n:]
	}
	return write(w, func(out *Page) {
		writeSettings(out, rows)
		out.Grid(storeTable(rows))
		for _, kind := range engine.Kinds {
			out.Grid(phaseTable(rows, kind))
		}
		writeComparisons(out, rows)
		notes, warnings, wall := readampNotes(rows), Warnings(set), 0.0
		if trees != nil {
			b := &budget{trees[0], trees[1]}
			b.write(out)
			notes, warnings = append(notes, budgetNote), append(warnings, b.warnings()...)
		}
		for _, r := range set {
			wall += r.WallSeconds
		}
		identities(out, Identities(set))
		out.List("Notes", notes...)
		out.End(warnings, wall)
	})
}

func writeSettings(out *Page, rows []*cell.Result) {
	first := rows[0]
	s, k := &first.Settings, &first.Keys
	out.Printf("Read amplification: what a lookup costs, by engine and filter\n\n")
	if k.Origin == "file" {
		out.Printf("keys      %s of %.1f bytes (%d to %d) and %s absent ones between them, from %s: %s lines, %s "+
			"empty, %s duplicates, %s outside; seed %d\n", count(k.Present), k.MeanLen, k.MinLen, k.MaxLen,
			count(k.Absent), k.Path, count(k.Lines), count(k.Empty), count(k.Duplicates), count(k.Outside), k.Seed)
	} else {
		out.Printf("keys      %s of %d bytes and %s absent ones between them, generated; seed %d\n",
			count(k.Present), k.MaxLen, count(k.Absent), k.Seed)
	}
	out.Printf("values    %d bytes, half compressible\n", s.ValueSize)
	out.Printf("stores    cache %s · memtable %s · block %d bytes · compression %s · no fsync\n", size(s.Cache),
		size(s.Memtable), s.Block, s.Compression)
	for _, of := range []struct{ engine, parts string }{{"siftkv", "leaves"}, {"pebble", "blocks"}} {
		is := func(r *cell.Result) bool { return strings.HasPrefix(r.Settings.Engine, of.engine) }
		at := slices.IndexFunc(rows, is)
		if at < 0 {
			continue
		}
		if of.engine == readamp.SiftKV {
			out.Printf("siftkv    compaction %s\n", rows[at].Settings.Compaction)
		}
		if index := rows[at].Settings.Index; index != 0 {
			out.Printf("%s    index %s of %s\n", of.engine, of.parts, size(index))
		}
	}
	seed := ""
	if s.Seed != s.DataSeed {
		seed = fmt.Sprintf("; seed %d", s.Seed)
	}
	out.Printf("lookups   %s of each kind per row and repetition, %s; %s more timed one by one; warm-up %s%s\n",
		count(s.Lookups), times(int(s.Reps), "repetition"), count(cell.SingleLookups(int(s.Lookups))), count(s.Lookups),
		seed)
	out.Machine(first.Environment.String())
}

func storeTable(rows []*cell.Result) *Grid {
	g := newLines("Stores: loaded in the same random order, flushed, compacted whole, reopened", 1,
		"store", "level", "files", "size", "entries", "filter", "bits/key", "index", "load s", "settle s")
	seen := map[string]bool{}
	for _, r := range rows {
		name, load, settle := r.Name, seconds(r.Build.LoadSeconds), seconds(r.Build.SettleSeconds)
		for _, l := range r.Shape.Levels {
			if !seen[r.Settings.BuildText()] {
				g.Add(name, levelName(l.Level), l.Files, size(l.Bytes), l.Entries, size(l.FilterBytes),
					bits(l.BitsPerKey()), size(l.IndexBytes), load, settle)
				name, load, settle = "", "", ""
			}
		}
		seen[r.Settings.BuildText()] = true
	}
	return g
}

func levelName(level int) string { return fmt.Sprintf("L%d", level) }

func phaseTable(rows []*cell.Result, kind engine.Kind) *Grid {
	title := fmt.Sprintf("%s: %s lookups per row", keysTitle(rows, kind), count(rows[0].Phase(kind).Lookups))
	g := newLines(title, 1,
		"", "bits\n/key", "files\n/op", "checks\n/op", "neg.\n/op", "true+\n/op", "false+\n/op",
		"FPR %\nmeasured [95 %]", "FPR %\ntheory", "index\n/op", "cached\nblk/op", "disk\nblk/op", "bytes\n/op",
		"ns/op\n", "p50\nns", "p99\nns")
	for _, r := range rows {
		p := r.Phase(kind)
		c := &p.Counters.Total
		per := func(n engine.Count) string { return perOp(n, p.Lookups) }
		theory := word(absentCell) // it stands only where there is something to compare it with
		if p.FPR != nil {
			theory = theoryItem(r)
		}
		g.Add(r.Name, bits(r.BitsPerKey), per(c.FilesConsidered), per(c.FilterChecks), per(c.Negatives),
			per(c.TruePositives), per(c.FalsePositives), rateItem(p.FPR), theory, per(c.IndexLookups),
			per(c.BlocksFromCache), per(c.FromDisk()), per(c.BytesFromDisk), whole(p.NsPerLookup), p.Latency.P50,
			p.Latency.P99)
	}
	return g
}

// baseline returns the row that others are compared with: Pebble's Get with its own filter, or with none if that was
// not measured; nil if neither was.
func baseline(rows []*cell.Result) *cell.Result {
	for _, filter := range []string{"own:10", "none"} {
		for _, r := range rows {
			if r.Settings.Engine == "pebble" && r.Settings.Filter == filter {
				return r
			}
		}
	}
	return nil
}

// writeComparisons says how many times as fast as the baseline each row is, by medians, and by repetitions for the
// spread: the loops of one ran within seconds of each other.
func writeComparisons(out *Page, rows []*cell.Result) {
	base := baseline(rows)
	if base == nil {
		return
	}
	for _, kind := range engine.Kinds {
		b := base.Phase(kind)
		out.Printf("\n%s keys, against %s (%s ns/op):\n\n", strings.ToUpper(string(kind[:1]))+string(kind[1:]),
			base.Name, whole(b.NsPerLookup))
		for _, r := range rows {
			if r == base || r.Name == readamp.Null {
				continue
			}
			p, low, high := r.Phase(kind), math.Inf(1), 0.0
			for i := range min(len(p.Repetitions), len(b.Repetitions)) {
				quotient := b.Repetitions[i].NsPerLookup() / p.Repetitions[i].NsPerLookup()
				low, high = min(low, quotient), max(high, quotient)
			}
			out.Printf("  %-32s %6s times as fast  (%s to %s within a repetition)\n",
				r.Name, ratio(b.NsPerLookup/p.NsPerLookup), ratio(low), ratio(high))
		}
	}
}

func readampNotes(rows []*cell.Result) []string {
	return append(Notes(rows), "\"-\": the engine does not count it.",
		fmt.Sprintf("ns/op: wall time of a loop per lookup, median of the repetitions (%d). p50 and p99: single "+
			"lookups, each with one clock reading (%d ns here) in it. The row \"null\" is the harness alone.",
			rows[0].Settings.Reps, rows[0].TimerNs))
}

// A budget compares two trees of the same keys whose filters take the same memory: in one every key has the same bits,
// in the other kv.Options.FilterBudget spreads them over the levels.
type budget struct{ uniform, spread *cell.Result }

const budgetNote = "Filter budget: a run is a sorted sequence of files, of which a lookup may have to ask one: each " +
	"flush in level 0, and one or (tiered) several of any other level; the sum of rates is over all runs, and what " +
	"an absent key costs in reads where it lies within the bounds of each (probes/op says how many did). Predicted: " +
	"theory; under the budget at the bits that the level's filters take."

func filterBytes(r *cell.Result) int64 { return r.Shape.Total().FilterBytes }

// more returns which part more the filters with the budget take.
func (b *budget) more() float64 {
	return float64(filterBytes(b.spread))/float64(filterBytes(b.uniform)) - 1
}

// equalMemory is how far the memory of two stores may differ to be called equal.
const equalMemory = 0.02

func (b *budget) warnings() []string {
	if math.Abs(b.more()) <= equalMemory {
		return nil
	}
	return []string{fmt.Sprintf(
		"filter budget: the filters take %+.1f %% against uniform bits, which is not equal memory: "+
			"footers and rounding weigh in filters of few keys, and the budget does not count them", 100*b.more())}
}

// write shows what spreading the bits of filters over the levels brings.
func (b *budget) write(out *Page) {
	u := b.uniform
	out.Printf("\nFilter budget: %s, the same bits for all keys against the same memory spread over the levels "+
		"(Monkey)\n", u.Settings.Filter)
	g := b.table()
	g.Title = fmt.Sprintf("%s, loaded in flushes with a rest after each, and %s written again; %s of absent keys",
		times(u.Keys.Present, "key"), count(u.Build.Rewritten), times(u.Absent.Lookups, "lookup"))
	out.WriteString(g.Text() + "\n")
	line := func(what string, show func(float64) string, of func(*cell.Result) float64,
		gain func(x, y float64) string) {
		x, y := of(b.uniform), of(b.spread)
		text := fmt.Sprintf("  %-28s %10s → %10s  %s", what, show(x), show(y), gain(x, y))
		out.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	quotient := func(x, y float64) string {
		if y == 0 {
			return ""
		}
		return "÷ " + ratio(x/y)
	}
	line("sum of rates, predicted, %", percent, func(r *cell.Result) float64 { return r.Predicted }, quotient)
	line("sum of rates, measured, %", percent, func(r *cell.Result) float64 { return r.Sum.Value }, quotient)
	line("blocks per absent lookup", func(x float64) string { return fixed(x, 4) }, func(r *cell.Result) float64 {
		return float64(r.Absent.Counters.Total.Blocks()) / float64(r.Absent.Lookups)
	}, quotient)
	line("ns per absent lookup", whole, func(r *cell.Result) float64 { return r.Absent.NsPerLookup },
		func(_, _ float64) string { return "" })
	line("filters", size[float64], func(r *cell.Result) float64 { return float64(filterBytes(r)) },
		func(_, _ float64) string { return fmt.Sprintf("%+.2f %%", 100*b.more()) })
}

func (b *budget) table() *Grid {
	g := newLines("", 2, "", "level", "files", "runs", "keys", "bits\n/key", "FPR %\npredicted",
		"FPR %\nmeasured [95 %]", "probes\n/op", "blocks\n/op")
	for _, r := range []*cell.Result{b.uniform, b.spread} {
		per := func(level int, units ...string) string {
			sum := 0.0
			for _, unit := range units {
				if m := tidy.Find(r.Metrics, strconv.Itoa(level), string(engine.Absent), unit); m != nil {
					sum += m.Value
				}
			}
			return perOne(sum)
		}
		name := r.Name
		for i, l := range r.Levels {
			g.Add(name, levelName(l.Level), r.Shape.Levels[i].Files, l.Runs, l.Keys, bits(l.BitsPerKey),
				percent(l.Predicted), rateItem(l.Measured), per(l.Level, "filter-checks/op", "unfiltered/op"),
				per(l.Level, "blocks/op"))
			name = ""
		}
		total, sum, t, n := r.Shape.Total(), r.Sum, &r.Absent.Counters.Total, r.Absent.Lookups
		g.Add("", "sum", total.Files, total.Runs, total.Entries, bits(total.BitsPerKey()), percent(r.Predicted),
			between(percent, sum.Value, sum.Low, sum.High), perOp(t.FilterChecks.Plus(t.Unfiltered), n),
			perOp(t.Blocks(), n))
	}
	return g
}
