package report

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// operating is the workloads of YCSB.
var operating = experiment{
	grids: func(r *tidy.Result) []*Grid {
		columns := []column{{"count", in(whole, "count")}, {"ops\n/s", func(n numbers) string {
			return in(whole, "rate")(numbers{r, ycsb.Cell(n.cell["engine"], n.cell["workload"])})
		}}}
		for _, name := range []string{"mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"} {
			columns = append(columns, column{name, in(whole, name)})
		}
		cells := r.Cells("engine", "workload", "operation")
		if settingsOf[ycsb.Settings](r).Rate > 0 { // operations are late
			columns = append(columns, column{"service\np50", in(whole, "service p50")},
				column{"service\np99", in(whole, "service p99")})
		}
		return []*Grid{cellsTable(r, "Nanoseconds", 3, []string{"engine", "workload", "operation"}, cells, columns...)}
	},
	notes: []string{
		"Workloads run one after the other on the same store, so that later ones find what earlier ones wrote.",
	},
}
