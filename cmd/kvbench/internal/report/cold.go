package report

import (
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
)

// Cold writes a result as text.
func Cold(w io.Writer, r *compare.ColdResult) error {
	return write(w, func(out *page.Page) {
		s := r.Settings
		out.Printf("Larger than memory: keys of %d bytes, values of %d bytes, compression %s; memory limit %s for "+
			"each store; %s lookups of each kind, with nothing in the page cache; seed %d\n\nmachine   %s\n",
			s.KeySize, s.ValueSize, s.Store.Compression, size(s.Memory), count(s.Lookups), s.Seed,
			r.Environment.String())
		for _, g := range []*Grid{coldLoads(r), coldReads(r), coldTimes(r), coldMemory(r)} {
			if len(g.Rows) > 0 {
				out.Grid(g)
			}
		}
		out.List("Notes",
			"load: to the last batch; calm: from then on, until there was nothing left to compact; settle: to have "+
				"everything in one sorted run. written: by all system calls, of load and calm.",
			"reads: calls that read a file, counted between the store and the system; of these and of bytes the store "+
				"knows. device bytes: what the system read for the process, in whole pages. requests: of the device, "+
				"whoever made them.",
			"The store's own memory is warm: as many lookups of each kind came before. The page cache is emptied of "+
				"the store's files before they are opened, and every few hundred lookups.",
			"pebble looks keys up by Get, which does not ask the filters of the last level; pebble-iterator is the "+
				"same store, asked by an iterator that does.",
			"filter bits, index bytes: of the files, per key. pinned: filters and indexes that the store has in "+
				"memory beside its cache, bytes per key; "+
				"Pebble has them in its cache. peak: resident memory of the process.")
		out.End(r.Environment.Warnings, r.WallSeconds)
	})
}

func coldLoads(r *compare.ColdResult) *Grid {
	g := newLines("Loads", 1, "engine", "keys", "load s", "calm s", "settle s", "keys/s", "CPU s", "written\n/ data",
		"disk\n/ data", "settled\n/ data", "at most\n/ data", "peak\nMiB")
	for i := range r.Points {
		p := &r.Points[i]
		data := float64(r.Settings.DataBytes(p.Keys))
		row := []any{p.Name(), p.Keys, figure(p.LoadSeconds), figure(p.CalmSeconds), figure(p.SettleSeconds),
			whole(float64(p.Keys) / (p.LoadSeconds + p.CalmSeconds)), figure(p.CPUSeconds),
			fixed(float64(p.WrittenBytes)/data, 2)}
		for _, tree := range []string{compare.TreeCalm, compare.TreeSettled} {
			row = append(row, fixed(float64(p.In(tree).DiskBytes)/data, 2))
		}
		g.Add(append(row, fixed(float64(p.PeakDisk)/data, 2), figure(mebi(p.PeakMemory)))...)
	}
	return g
}

// coldRows adds a row for every tree of every store.
func coldRows(g *Grid, r *compare.ColdResult, row func(p *compare.ColdPoint, s *compare.ColdState) []any) *Grid {
	for i := range r.Points {
		p := &r.Points[i]
		for j := range p.States {
			s := &p.States[j]
			g.Add(append([]any{p.NameOf(s.Engine), s.Tree, p.Keys}, row(p, s)...)...)
		}
	}
	return g
}

func coldReads(r *compare.ColdResult) *Grid {
	g := newLines("Per lookup: absent keys, then existing ones", 2, "engine", "tree", "keys", "runs",
		"absent\nreads", "bytes", "device\nbytes", "requests", "existing\nreads", "bytes", "device\nbytes", "requests")
	return coldRows(g, r, func(_ *compare.ColdPoint, s *compare.ColdState) []any {
		row := []any{s.Shape.Runs}
		for _, l := range []*compare.ColdLookups{&s.Absent, &s.Existing} {
			for _, c := range []engine.Count{l.Reads.Files.Calls, l.Reads.Files.Bytes, l.Reads.DeviceBytes,
				l.Reads.Requests} {
				row = append(row, perOp(c, int(l.Lookups)))
			}
		}
		return row
	})
}

func coldTimes(r *compare.ColdResult) *Grid {
	g := newLines("Microseconds per lookup: absent keys, then existing ones", 2, "engine", "tree", "keys", "open ms",
		"absent\np50", "p99", "p99.9", "existing\np50", "p99", "p99.9")
	return coldRows(g, r, func(_ *compare.ColdPoint, s *compare.ColdState) []any {
		row := []any{figure(1e3 * s.OpenSeconds)}
		for _, l := range []*compare.ColdLookups{&s.Absent, &s.Existing} {
			for _, ns := range []int64{l.P50, l.P99, l.P999} {
				row = append(row, figure(float64(ns)/1e3))
			}
		}
		return row
	})
}

func coldMemory(r *compare.ColdResult) *Grid {
	g := newLines("Memory", 2, "engine", "tree", "keys", "filter\nbits", "index\nbytes", "pinned\nfilters",
		"pinned\nindexes", "cache\nMiB", "peak\nMiB", "of it before\nopen, MiB")
	return coldRows(g, r, func(p *compare.ColdPoint, s *compare.ColdState) []any {
		per := func(c engine.Count) string {
			if !c.Known() {
				return absentCell
			}
			return fixed(float64(c)/float64(p.Keys), 2)
		}
		cache := absentCell
		if c := s.Usage.CacheMemory; c.Known() {
			cache = figure(mebi(int64(c)))
		}
		return []any{bits(s.Shape.BitsPerKey()), fixed(float64(s.Shape.IndexBytes)/float64(p.Keys), 2),
			per(s.Usage.FilterMemory), per(s.Usage.IndexMemory), cache, figure(mebi(s.PeakMemory)),
			figure(mebi(s.BaseMemory))}
	})
}

// mebi returns bytes in MiB.
func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }
