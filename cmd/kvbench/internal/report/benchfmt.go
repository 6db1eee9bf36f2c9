package report

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
)

// CellsBenchfmt writes a set of results as text for benchstat: a benchmark per cell and
// kind, a line per repetition with the same counters in each, which are declared exact.
func CellsBenchfmt(w io.Writer, set []*cell.Result) error {
	seen := map[string]bool{}
	for _, r := range set {
		for _, m := range r.Metrics {
			if unit := m.Unit; !seen[unit] {
				seen[unit] = true
				text := "Unit " + unit
				if m.Exact {
					text += " assume=exact"
				}
				if m.Better != "" {
					text += " better=" + m.Better
				}
				if _, err := fmt.Fprintln(w, text); err != nil {
					return err
				}
			}
		}
	}
	out := benchfmt.NewWriter(w)
	for _, r := range set {
		for _, kind := range []string{"existing", "absent", cell.StoreKind} {
			if err := writeBenchmark(out, r, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeBenchmark writes the metrics of one kind.
func writeBenchmark(out *benchfmt.Writer, r *cell.Result, kind string) error {
	lines := 0
	for _, m := range r.Metrics {
		if m.Kind == kind {
			lines = max(lines, 1, len(m.Samples))
		}
	}
	for i := range lines {
		b := &benchfmt.Result{
			Name: benchfmt.Name("Cell/" + strings.ToLower(kind) + "/" + r.Settings.Engine + "/" + r.Name), Iters: 1,
		}
		for _, f := range cell.Fields(&r.Settings) {
			b.Config = append(b.Config, benchfmt.Config{Key: f.Name, Value: []byte(f.Text()), File: true})
		}
		if kind != cell.StoreKind {
			b.Iters = int(r.Settings.Lookups)
		}
		for _, m := range r.Metrics {
			switch {
			case m.Kind != kind:
			case i < len(m.Samples):
				b.Values = append(b.Values, benchfmt.Value{Value: m.Samples[i], Unit: m.Unit})
			case m.Exact:
				b.Values = append(b.Values, benchfmt.Value{Value: m.Value, Unit: m.Unit})
			}
		}
		if err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}
