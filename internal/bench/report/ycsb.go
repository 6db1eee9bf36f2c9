package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/ycsb"
)

// YCSB writes a result as text for a terminal.
func YCSB(w io.Writer, r *ycsb.Result) error {
	var out bytes.Buffer
	loop := "closed loop"
	if r.Rate > 0 {
		loop = grouped(int64(r.Rate)) + " operations per second, latency from when each was due"
	}
	fmt.Fprintf(&out, "YCSB: %s records of %d + %d bytes, %s per workload, %s, %s, seed %d\n\nmachine   %s\nsettings  cache %s, memtable %s, blocks of %s, compression %s, no sync\n\n",
		grouped(int64(r.Keys)), r.KeyBytes, r.ValueBytes, times(r.Operations, "operation"),
		times(r.Workers, "worker"), loop, r.Seed, r.Environment.String(),
		bench.Size(r.Store.CacheBytes), bench.Size(r.Store.MemtableBytes), bench.Size(r.Store.BlockBytes),
		r.Store.Compression)
	g := Grid{Title: "Nanoseconds", Columns: []Column{
		{Name: "engine", Text: true}, {Name: "workload", Text: true}, {Name: "operation", Text: true},
		{Name: "count"}, {Name: "ops /s"},
		{Name: "mean"}, {Name: "p50"}, {Name: "p90"}, {Name: "p99"}, {Name: "p99.9"}, {Name: "p99.99"}, {Name: "max"},
	}}
	if r.Rate > 0 {
		g.Columns = append(g.Columns, Column{Name: "service p50"}, Column{Name: "service p99"})
	}
	for _, row := range r.Rows {
		for i, v := range row.Verbs {
			items := []Item{word(""), word(""), word(v.Verb), word(grouped(v.Count)), word("")}
			if i == 0 {
				items[0], items[1], items[4] = word(row.Engine), word(row.Workload), word(whole(row.PerSecond))
			}
			p := v.Due
			items = append(items, word(whole(p.Mean)))
			for _, x := range []int64{p.P50, p.P90, p.P99, p.P999, p.P9999, p.Max} {
				items = append(items, word(grouped(x)))
			}
			if r.Rate > 0 {
				items = append(items, word(grouped(v.Service.P50)), word(grouped(v.Service.P99)))
			}
			g.Rows = append(g.Rows, items)
		}
	}
	out.WriteString(g.Text())
	writeList(&out, "Notes", []string{
		fmt.Sprintf("Each latency has two readings of the clock in it, %d ns apart at least. Every answer was checked, off the clock.", r.TimerNs),
		"Workloads run one after the other on the same store, so that later ones find what earlier ones wrote.",
	})
	writeList(&out, "Warnings", r.Warnings)
	_, err := out.WriteTo(w)
	return err
}
