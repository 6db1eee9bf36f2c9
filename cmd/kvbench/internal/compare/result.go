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

// add appends a sample to a phase.
func (x *run) add(p Phase, name, compression string, s Sample) {
	of := Cell(p.Name, compression, name)
	fields := s.fields()
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		x.result.Append(of, field, unitOf(field), fields[field])
	}
	if s.CPUSeconds > 0 {
		x.result.Append(of, PerCPU, "1/s", float64(s.Operations)/s.CPUSeconds)
	}
	for _, f := range Figures {
		if f.Phase == p.Name {
			x.result.Append(of, f.Name, f.Unit, f.value(s, float64(x.config.dataBytes())))
		}
	}
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
	}
	return ""
}
