// Package compare runs the same workloads on several engines, each in a process of
// its own, and says how many times as fast one is as the others.
//
// The parent (Run) starts a worker process for every store (Serve) and tells each in
// turn what to do; the others wait meanwhile. Workers draw keys, time themselves and
// check every answer; a wrong one ends the run.
//
// Scale shows how the cost of a lookup, and the memory per key, grow with the number of
// keys. A lookup makes a number of dependent loads from memory that should not depend on
// the number of keys; what a load costs does, since more of it comes from further away.
// So the time of one such load, from as much memory as the store has pinned, is measured
// beside the lookups.
package compare

import (
	"cmp"
	_ "embed" // the workloads
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// A Config says what to compare. Every field that the experiment uses is needed.
type Config struct {
	Settings
	Setup
}

// Settings are those of a run. What an experiment does not use is left out of its result.
type Settings struct {
	Engines      []string        `json:"engines"`                // of engine.Peers; the first is the baseline
	Workloads    []string        `json:"workloads,omitempty"`    // of Workloads
	Compressions []string        `json:"compressions,omitempty"` // of Compressions; writes have the first
	Keys         int             `json:"keys,omitempty"`
	KeySize      int             `json:"key_bytes"`
	ValueSize    int             `json:"value_bytes"`
	Repetitions  int             `json:"repetitions,omitempty"`
	Loads        int             `json:"loads,omitempty"`   // of the load; not of bbolt and LMDB
	Seconds      float64         `json:"seconds,omitempty"` // of each phase, engine and repetition
	Seed         uint64          `json:"seed"`
	Store        engine.Settings `json:"store"` // of Run without Compression; of the others without CacheBytes
	Large        Large           `json:"large,omitzero"`

	// Axes of the other experiments.
	Sizes      []int    `json:"sizes,omitempty"`              // of Scale and Cold: numbers of keys
	CacheShare float64  `json:"cache_share,omitempty"`        // of Scale: block cache, as a part of the data
	Variants   []string `json:"variants,omitempty"`           // of Cold, of SiftKV; the first at every size
	Memory     int64    `json:"memory_limit_bytes,omitempty"` // of Cold, of each store
	Lookups    int      `json:"lookups,omitempty"`            // of Cold, of each kind, after as many not timed
	Procs      []int    `json:"gomaxprocs,omitempty"`         // of Contend
	Goroutines []int    `json:"goroutines,omitempty"`         // of Contend
}

// Compressions lists what every log-structured engine has.
var Compressions = []string{"none", "snappy"}

func (c *Config) validate() error {
	if err := checkEngines(c.Engines); err != nil {
		return err
	}
	for _, list := range []struct {
		flag           string
		given, allowed []string
	}{
		{"--engine", c.Engines, engine.Peers()}, {"--workload", c.Workloads, Workloads()},
		{"--compression", c.Compressions, Compressions},
	} {
		if err := bench.CheckNames(list.flag, list.given, list.allowed); err != nil {
			return err
		}
	}
	store := c.Store
	store.Compression = c.Compressions[0]
	return cmp.Or(c.Large.validate(), checkStores([]int{c.Keys}, c.KeySize, c.ValueSize, store),
		c.checkTurns(), bench.Within("--loads", 1, 100, c.Loads))
}

func (s *Settings) bytesOf(keys int) int64 { return int64(keys) * int64(s.KeySize+s.ValueSize) }

func (s *Settings) dataBytes() int64 { return s.bytesOf(s.Keys) }

func (s *Settings) checkTurns() error {
	return cmp.Or(bench.Within("--reps", 1, 1000, s.Repetitions),
		bench.CheckSeconds(s.Seconds))
}

// A Phase is one workload as every engine is put through it.
type Phase struct {
	Name  string // as given to --workload
	Title string // as in the report
	Unit  string // of an operation; empty: its figures are all there is
	Stage stage
	job   `yaml:",inline"`
}

// A stage is a state of the stores that several phases share.
type stage string

// Stages in the order in which a run goes through them.
const (
	loading    stage = "loading"     // the load itself
	unsettled  stage = "unsettled"   // loaded, compaction not done
	usual      stage = "usual"       // settled, the common settings
	smallCache stage = "small cache" // settled, a cache of a tenth of the data
	largeCache stage = "large cache" // settled, a cache of twice the data, every block in it
	fresh      stage = "fresh"       // settled, a process that has just begun
	soon       stage = "soon"        // written to, no waiting
	withOS     stage = "with the OS" // written to, each write with the operating system when it returns
	durable    stage = "durable"     // written to by several goroutines, each write on disk when it returns
	crowded    stage = "crowded"     // everything cached, many goroutines under some processors, see Contend
	ownStore   stage = "own store"   // a store of its own, see experiments
)

// Stages that read run with every compression; those that write, like fresh, with the first only.
var reading, writing = []stage{usual, smallCache, largeCache}, []stage{soon, withOS, durable, crowded}

// writers is the number of goroutines of the durable stage.
const writers = 16

// A Figure is something that a phase shows in addition to its operations per second.
type Figure struct {
	Phase, Name, Title, Unit string
	Of, Less, Per            string  // fields of a sample
	Times, By                float64 // 0: 1
}

func (f *Figure) value(fields map[string]float64) float64 {
	x := max(0, fields[f.Of]-fields[f.Less]) * cmp.Or(f.Times, 1) / cmp.Or(f.By, 1)
	if f.Per != "" {
		x /= fields[f.Per]
	}
	return x
}

//go:embed workloads.yaml
var workloadsFile []byte

// workloads are the tables of the file.
var workloads = bench.Table[struct {
	Phases      []Phase
	Figures     []Figure
	Experiments []experiment
}]("compare/workloads.yaml", workloadsFile)

// Figures lists what is taken of which phase.
var Figures = workloads.Figures

// phases are in the order of the report, and experiments those with stores of their own.
var phases, experiments = workloads.Phases, workloads.Experiments

// heavySeconds is how much longer than others the phase with heavy writes is: flushes
// and compactions must happen in it.
const heavySeconds = 6

func (s stage) writes() bool { return s == ownStore || slices.Contains(writing, s) }

// Workloads lists the names of all phases.
func Workloads() []string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = p.Name
	}
	return names
}

// Phases returns all workloads in the order of the report.
func Phases() []Phase { return phases }

// Metrics of a phase, by repetition. Others are the figures of the phase and all fields of a Sample.
const (
	PerSecond = "per_second"     // operations, of all threads
	PerCPU    = "per_cpu_second" // operations per second of processor time, where that was measured
	Allocs    = "allocs_per_op"
	LockWait  = "lock_wait_ns_per_op" // of all goroutines together, of Contend
)

// Cell names what an engine did in a phase.
func Cell(phase, compression, engine string) tidy.Cell {
	return tidy.Of("workload", phase, "compression", compression, "engine", engine)
}

// cell is Cell with the axes of a phase.
func (p *Phase) cell(compression, engine string) tidy.Cell {
	of := Cell(p.Name, compression, engine)
	if p.Stage == crowded {
		of = of.With("gomaxprocs", p.Procs, "goroutines", p.Threads)
	}
	return of
}

type number struct {
	unit  string
	value float64
}

// add appends a sample to a phase. A metric has a row for every repetition if one of them is not 0, so that those of
// several engines are compared by repetition.
func (x *run) add(p Phase, name, compression string, s Sample) {
	of := p.cell(compression, name)
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
	all, fields := map[string]number{}, s.fields()
	for field, value := range fields {
		all[field] = number{unitOf(field), value}
	}
	fields["data"] = float64(x.config.dataBytes())
	if p.Stage == crowded {
		all[LockWait] = number{"ns/op", 1e9 * s.MutexWait / float64(max(1, s.Operations))}
	}
	if s.CPUSeconds > 0 {
		all[PerCPU] = number{"1/s", float64(s.Operations) / s.CPUSeconds}
	}
	for _, f := range Figures {
		if f.Phase == p.Name {
			all[f.Name] = number{f.Unit, f.value(fields)}
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
