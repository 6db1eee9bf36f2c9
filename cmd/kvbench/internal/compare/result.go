package compare

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Metrics of a phase, by repetition. Others are the figures of the phase and all fields of a Sample.
const (
	PerSecond = "per_second"     // operations, of all threads
	PerCPU    = "per_cpu_second" // operations per second of processor time, where that was measured
	Allocs    = "allocs_per_op"
)

// Cell names what an engine did in a phase.
func Cell(phase, compression, engine string) tidy.Cell {
	return tidy.Of("workload", phase, "compression", compression, "engine", engine)
}

// A number is the value of a metric.
type number struct {
	unit  string
	value float64
}

// add appends a sample to a phase. A metric has a row for every repetition if one of them is not 0, so that those of
// several engines are compared by repetition.
func (x *run) add(p Phase, name, compression string, s Sample) {
	of := Cell(p.Name, compression, name)
	now := x.numbers(p, &s)
	repetition := len(x.result.Values(of, PerSecond))
	for _, row := range x.result.Rows {
		if _, ok := now[row.Metric]; !ok && maps.Equal(row.Cell, of) {
			now[row.Metric] = number{unit: row.Unit}
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(now)) {
		n := now[metric]
		for range repetition - len(x.result.Values(of, metric)) {
			x.result.Append(of, metric, n.unit, 0)
		}
		x.result.Append(of, metric, n.unit, n.value)
	}
}

// numbers returns the metrics of a sample of a phase, without most of those that are 0.
func (x *run) numbers(p Phase, s *Sample) map[string]number {
	all := map[string]number{}
	for field, value := range s.fields() {
		all[field] = number{unitOf(field), value}
	}
	if s.CPUSeconds > 0 {
		all[PerCPU] = number{"1/s", float64(s.Operations) / s.CPUSeconds}
	}
	for _, f := range Figures {
		if f.Phase == p.Name {
			all[f.Name] = number{f.Unit, f.value(*s, float64(x.config.dataBytes()))}
		}
	}
	return all
}

// fields returns the numbers of a sample by their names in JSON.
func (s *Sample) fields() map[string]float64 {
	data, _ := json.Marshal(s) // it is numbers
	var all map[string]any
	_ = json.Unmarshal(data, &all)
	fields := map[string]float64{}
	for name, value := range all {
		if x, ok := value.(float64); ok {
			fields[name] = x
		}
	}
	return fields
}

// unitOf returns the unit that a field is named for.
func unitOf(field string) string {
	switch {
	case strings.HasSuffix(field, "per_second"):
		return "1/s"
	case strings.HasSuffix(field, "seconds"):
		return "s"
	case strings.HasSuffix(field, "_ns"):
		return "ns"
	case strings.HasSuffix(field, "_bytes"):
		return "bytes"
	case strings.HasSuffix(field, "_bytes_per_op"):
		return "bytes/op"
	case strings.HasSuffix(field, "_per_op"):
		return "/op"
	}
	return ""
}
