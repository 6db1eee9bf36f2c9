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

// validate reports the first field that makes no sense.
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
		c.checkTurns(), bench.CheckBounds(bench.Bound{Flag: "--loads", Value: int64(c.Loads), Low: 1, High: 100}))
}

// bytesOf returns the bytes of keys with their values.
func (s *Settings) bytesOf(keys int) int64 { return int64(keys) * int64(s.KeySize+s.ValueSize) }

// dataBytes returns the bytes of all keys and values.
func (s *Settings) dataBytes() int64 { return s.bytesOf(s.Keys) }

// checkTurns reports repetitions or seconds that make no sense.
func (s *Settings) checkTurns() error {
	return cmp.Or(bench.CheckBounds(bench.Bound{Flag: "--reps", Value: int64(s.Repetitions), Low: 1, High: 1000}),
		bench.CheckSeconds(s.Seconds))
}

// A Phase is one workload as every engine is put through it.
type Phase struct {
	Name  string // as given to --workload
	Title string // as in the report
	Unit  string // of an operation; empty: its figures are all there is

	stage stage
	job   job
}

// A stage is a state of the stores that several phases share.
type stage int

// Stages in the order in which a run goes through them. From fresh on they run with
// the first compression only.
const (
	loading    stage = iota // the load itself
	unsettled               // loaded, compaction not done
	usual                   // settled, the common settings
	smallCache              // settled, a cache of a tenth of the data
	largeCache              // settled, a cache of twice the data, every block in it
	fresh                   // settled, a process that has just begun
	soon                    // written to, no waiting
	withOS                  // written to, each write with the operating system when it returns
	durable                 // written to by several goroutines, each write on disk when it returns
	crowded                 // everything cached, many goroutines under some processors, see Contend
	stageEnd
	ownStore // a store of its own, see experiments
)

// writers is the number of goroutines of the durable stage.
const writers = 16

// phases lists all workloads in the order of the report.
var phases = []Phase{
	{Name: "load", Title: "load, batches of 100, to settled", Unit: "key", stage: loading},
	{Name: "absent-behind", Title: "absent, right after the load", Unit: "get", stage: unsettled,
		job: job{Kind: "absent"}},
	{Name: "absent", Title: "absent", Unit: "get", stage: usual, job: job{Kind: "absent"}},
	{Name: "absent-2", Title: "absent, 2 threads", Unit: "get", stage: usual, job: job{Kind: "absent", Threads: 2}},
	{Name: "existing", Title: "existing", Unit: "get", stage: usual, job: job{Kind: "existing"}},
	{Name: "existing-cached", Title: "existing, everything cached", Unit: "get", stage: largeCache,
		job: job{Kind: "existing"}},
	{Name: "existing-small", Title: "existing, cache a tenth", Unit: "get", stage: smallCache,
		job: job{Kind: "existing"}},
	{Name: "zipf", Title: "zipfian 0.99", Unit: "get", stage: usual, job: job{Kind: "zipfian"}},
	{Name: "scan-full", Title: "full scan", Unit: "entry", stage: usual, job: job{Kind: "scan"}},
	{Name: "scan-10", Title: "scan of 10", Unit: "scan", stage: usual, job: job{Kind: "scan", Limit: 10}},
	{Name: "scan-100", Title: "scan of 100", Unit: "scan", stage: usual, job: job{Kind: "scan", Limit: 100}},
	{Name: "open", Title: "open the store", Unit: "open", stage: fresh},
	{Name: "memory", Title: "memory after lookups", stage: fresh},
	{Name: "set", Title: "single writes, no sync", Unit: "set", stage: withOS, job: job{Kind: "set"}},
	{Name: "set-soon", Title: "single writes, no sync, with the OS later", Unit: "set", stage: soon,
		job: job{Kind: "set"}},
	{Name: "set-sync", Title: "single writes, 16 goroutines, sync", Unit: "set", stage: durable,
		job: job{Kind: "set", Threads: writers}},
	{Name: "ycsb-a", Title: "YCSB A: half reads, half updates", Unit: "op", stage: soon, job: job{Kind: "ycsb-a"}},
	{Name: "ycsb-b", Title: "YCSB B: 95 % reads, updates", Unit: "op", stage: soon, job: job{Kind: "ycsb-b"}},
	{Name: "ycsb-c", Title: "YCSB C: reads", Unit: "op", stage: soon, job: job{Kind: "ycsb-c"}},
	{Name: "ycsb-d", Title: "YCSB D: 95 % reads of the latest, inserts", Unit: "op", stage: soon,
		job: job{Kind: "ycsb-d"}},
	{Name: "ycsb-e", Title: "YCSB E: 95 % scans, inserts", Unit: "op", stage: soon, job: job{Kind: "ycsb-e"}},
	{Name: "ycsb-f", Title: "YCSB F: half reads, half read-modify-writes", Unit: "op", stage: soon,
		job: job{Kind: "ycsb-f"}},
	{Name: "heavy", Title: "existing, during heavy writes", Unit: "get", stage: soon, job: job{Kind: "heavy"}},
	{Name: "large-load", Title: "load, large values, to calm", Unit: "key", stage: ownStore},
	{Name: "large-overwrite", Title: "overwrites, large values, to calm", Unit: "key", stage: ownStore},
	{Name: "large-get", Title: "existing, large values, overwritten", Unit: "get", stage: ownStore},
	{Name: "large-scan", Title: "full scan, large values, overwritten", Unit: "entry", stage: ownStore},
	{Name: "large-keys", Title: "full scan of keys alone, large values", Unit: "entry", stage: ownStore},
	{Name: "large-churn", Title: "constant overwrites, large values", Unit: "key", stage: ownStore},
	{Name: "overwrite", Title: "overwrites, values of 1 KiB, to calm", Unit: "key", stage: ownStore},
	{Name: "delete", Title: "deletes of 9 keys in 10", Unit: "key", stage: ownStore},
	{Name: "deleted-scan", Title: "scan of 10 after deletes", Unit: "scan", stage: ownStore},
	{Name: "deleted-get", Title: "deleted keys", Unit: "get", stage: ownStore},
	{Name: "delete-range", Title: "range deletes, 10 keys in 20", Unit: "range", stage: ownStore},
	{Name: "deleted-range-scan", Title: "scan of 10 after range deletes", Unit: "scan", stage: ownStore},
	{Name: "deleted-range-get", Title: "keys of deleted ranges", Unit: "get", stage: ownStore},
	{Name: "counter", Title: "additions to counters", Unit: "add", stage: ownStore},
	{Name: "counter-get", Title: "counters after 50 additions each", Unit: "get", stage: ownStore},
	{Name: "limit", Title: "memory under a limit", stage: ownStore},
}

// heavySeconds is how much longer than others the phase with heavy writes is: flushes
// and compactions must happen in it.
const heavySeconds = 6

// writes reports whether a stage changes the stores.
func (s stage) writes() bool { return s >= soon }

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

// A Figure is something that a phase shows in addition to its operations per second.
type Figure struct {
	Phase, Name, Title, Unit string

	value func(s Sample, dataBytes float64) float64
}

// Figures lists what is taken of which phase.
var Figures = []Figure{
	{"load", "written", "bytes written by the load", "bytes of data",
		func(s Sample, data float64) float64 { return float64(s.Written) / data }},
	{"load", "space", "bytes on disk when settled", "bytes of data",
		func(s Sample, data float64) float64 { return float64(s.OnDisk) / data }},
	{"load", "load-cpu", "processor time of the load", "µs per key",
		func(s Sample, _ float64) float64 { return 1e6 * s.CPUSeconds / float64(s.Operations) }},
	{"load", "load-peak", "memory at most during the load", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Peak - s.Base) }},
	{"existing", "allocs-existing", "allocations of a get, existing", "",
		func(s Sample, _ float64) float64 { return s.Allocs }},
	{"existing-small", "allocs-small", "allocations of a get, cache a tenth", "",
		func(s Sample, _ float64) float64 { return s.Allocs }},
	{"absent", "allocs-absent", "allocations of a get, absent", "",
		func(s Sample, _ float64) float64 { return s.Allocs }},
	{"memory", "rss", "memory after lookups", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Resident - s.Base) }},
	{"memory", "rss-anon", "of it not backed by files", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Anon) }},
	{"open", "open", "time to open", "ms", func(s Sample, _ float64) float64 { return 1e3 * s.Seconds }},
	{"heavy", "p50", "median get during heavy writes", "µs",
		func(s Sample, _ float64) float64 { return float64(s.P50) / 1e3 }},
	{"heavy", "p99.9", "p99.9 of gets during heavy writes", "µs",
		func(s Sample, _ float64) float64 { return float64(s.P999) / 1e3 }},
	{"heavy", "stall", "longest batch of 100 meanwhile", "ms",
		func(s Sample, _ float64) float64 { return float64(s.LongestBatch) / 1e6 }},
	{"heavy", "heavy-batches", "batches written meanwhile", "",
		func(s Sample, _ float64) float64 { return float64(s.Batches) }},
	{"large-load", "large-written", "bytes written by the load, large values", "bytes of data", overwritten},
	{"large-load", "large-space", "bytes on disk, large values", "bytes of data", taken},
	{"large-overwrite", "large-overwritten", "bytes written by overwrites, large values", "bytes of data",
		overwritten},
	{"large-overwrite", "large-overwritten-space", "bytes on disk after overwrites, large values", "bytes of data",
		taken},
	{"large-overwrite", "large-overwritten-most", "bytes on disk at most meanwhile, large values", "bytes of data",
		atMost},
	{"large-overwrite", "large-peak", "memory at most, load and overwrites of large values", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Peak - s.Base) }},
	{"large-churn", "churn-written", "bytes written by constant overwrites", "bytes of data", overwritten},
	{"large-churn", "churn-space", "bytes on disk after constant overwrites", "bytes of data", taken},
	{"large-churn", "churn-most", "bytes on disk at most during constant overwrites", "bytes of data", atMost},
	{"overwrite", "overwritten", "bytes written by overwrites, values of 1 KiB", "bytes of data", overwritten},
	{"overwrite", "overwritten-space", "bytes on disk after overwrites, values of 1 KiB", "bytes of data", taken},
	{"limit", "limit-peak", "memory at most under a limit", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Peak - s.Base) }},
	{"limit", "limit", "the limit, a quarter of the data", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Data) }},
}

// own is a quotient of what a phase with a store of its own has done.
func own(part func(s Sample) (a, b int64)) func(Sample, float64) float64 {
	return func(s Sample, _ float64) float64 {
		a, b := part(s)
		return float64(a) / float64(b)
	}
}

// overwritten, taken and atMost are what overwrites cost: of the bytes that were overwritten, and
// of those that are there, in the end and at any moment.
var (
	overwritten = own(func(s Sample) (int64, int64) { return s.Written, s.Data })
	taken       = own(func(s Sample) (int64, int64) { return s.OnDisk, s.Live })
	atMost      = own(func(s Sample) (int64, int64) { return s.PeakDisk, s.Live })
)

func mebi(bytes int64) float64 { return float64(max(0, bytes)) / (1 << 20) }

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
	if p.stage == crowded {
		of = of.With("gomaxprocs", p.job.Procs, "goroutines", p.job.Threads)
	}
	return of
}

// A number is the value of a metric.
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
	all := map[string]number{}
	for field, value := range s.fields() {
		all[field] = number{unitOf(field), value}
	}
	if p.stage == crowded {
		all[LockWait] = number{"ns/op", 1e9 * s.MutexWait / float64(max(1, s.Operations))}
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
