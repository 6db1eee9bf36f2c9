package report

import (
	"fmt"
	"io"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// YCSB writes a result as text for a terminal.
func YCSB(w io.Writer, r *ycsb.Result) error {
	return write(w, func(out *page.Page) {
		loop := "closed loop"
		if r.Rate > 0 {
			loop = count(int64(r.Rate)) + " operations per second, latency from when each was due"
		}
		out.Printf("YCSB: %s records of %d + %d bytes, %s per workload, %s, %s, seed %d\n\nmachine   %s\n",
			count(r.Keys), r.KeySize, r.ValueSize, times(r.Operations, "operation"), times(r.Workers, "worker"), loop,
			r.Seed, r.Environment.String())
		out.Printf("settings  cache %s, memtable %s, blocks of %s, compression %s, no sync\n",
			size(r.Store.CacheBytes), size(r.Store.MemtableBytes), size(r.Store.BlockBytes), r.Store.Compression)
		out.Grid(YCSBGrid(r))
		out.List("Notes",
			fmt.Sprintf("Each latency has two readings of the clock in it, %d ns apart at least. Every answer was "+
				"checked, off the clock.", r.TimerNs),
			"Workloads run one after the other on the same store, so that later ones find what earlier ones wrote.")
		out.List("Warnings", r.Warnings...)
	})
}

// YCSBGrid has a line per workload and operation.
func YCSBGrid(r *ycsb.Result) *Grid {
	g := newGrid("Nanoseconds", 3, "engine", "workload", "operation", "count", "ops /s",
		"mean", "p50", "p90", "p99", "p99.9", "p99.99", "max")
	if r.Rate > 0 {
		g.Columns = append(g.Columns, Column{Name: "service p50"}, Column{Name: "service p99"})
	}
	for _, row := range r.Rows {
		engine, workload, rate := row.Engine, row.Workload, whole(row.PerSecond)
		for _, v := range row.Verbs {
			p := v.Due
			items := []any{engine, workload, v.Verb, v.Count, rate,
				whole(p.Mean), p.P50, p.P90, p.P99, p.P999, p.P9999, p.Max}
			if r.Rate > 0 {
				items = append(items, v.Service.P50, v.Service.P99)
			}
			g.Add(items...)
			engine, workload, rate = "", "", ""
		}
	}
	return g
}
