package compare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// Bounds of the stores of phases that have one of their own.
const (
	minTrialKeys  = 400
	trialMemtable = 8 // the data of these small stores is 8 memtables
	largeMemtable = 2 // the same of stores with large values, which are not as small
	leastLimit    = 4 << 20
	leastMemtable = 64 << 10
	batchShare    = 10 // of a memtable that a batch may have: Badger takes no more than a seventh
)

// An experiment is some phases with a store of their own, which each engine makes anew for
// them, in a process of its own.
type experiment struct {
	Large    bool // values are as Settings.Large has them, and the space that they take is watched
	Part     int  // of the keys of the run
	Value    int  // its size; 0: that of the run
	Ranges   bool // only for engines that have range tombstones
	Counters bool
	Limit    int64 // part of the data that the memory limit has; 0: none
	Steps    []step
}

// store returns the number of keys, the size of a value, and the settings, for those of other stores.
func (e *experiment) store(c *Config, s engine.Settings) (keys, valueSize int, settings engine.Settings) {
	if e.Large {
		s.Inline = true // where it is not what an engine is there for
		return c.Large.keys(c.KeySize), c.Large.ValueSize, s
	}
	n, size := c.Keys/e.Part, cmp.Or(e.Value, c.ValueSize)
	if s.Counters = e.Counters; e.Limit > 0 {
		s = s.WithMemoryLimit(max(leastLimit, int64(n)*int64(c.KeySize+size)/e.Limit))
	}
	return n, size, s
}

// A step of an experiment is measured for a phase, or done for those that come after it.
type step struct {
	Phase    string // empty: none
	How      string // fill, rewrite, do, ask or size: see the file
	job      `yaml:",inline"`
	Optional bool // done only if its phase is chosen
	WithKeys bool `yaml:"with_keys"` // by engines that scan keys without values
}

func (e *experiment) has(phase string) bool {
	return slices.ContainsFunc(e.Steps, func(s step) bool { return phase != "" && s.Phase == phase })
}

type trial struct {
	run         *run
	child       *child
	name        string
	compression string
	open        task // opens the store
	keys        int
	entryBytes  int64
}

// runExperiments runs the experiments that have chosen phases, with every engine that can, as
// often as stores are loaded.
func (x *run) runExperiments(ctx context.Context, compression string) error {
	chosen := x.of(ownStore)
	for _, e := range experiments {
		at := slices.IndexFunc(chosen, func(p Phase) bool { return e.has(p.Name) })
		if at < 0 {
			continue
		}
		phase := x.config.Progress.Start(chosen[at].Name, 0, "")
		for rep := range x.config.Loads {
			for i := range x.config.Engines {
				name := x.config.Engines[(i+rep)%len(x.config.Engines)]
				if name == engine.PebbleIteratorName || e.Ranges && !engine.DeletesRanges(name) ||
					rep > 0 && !engine.LogStructured(name) {
					continue
				}
				if err := x.trial(ctx, &e, name, compression); err != nil {
					return fmt.Errorf("%s: %w", chosen[at].Name, err)
				}
			}
		}
		phase.Done()
	}
	return nil
}

func (x *run) trial(ctx context.Context, e *experiment, name, compression string) error {
	dir := filepath.Join(x.dir, name+"-trial")
	settings := x.settings(loading, compression)
	share := int64(trialMemtable)
	if e.Large {
		share = largeMemtable
	}
	settings.MemtableBytes = max(leastMemtable, settings.MemtableBytes/share)
	n, valueSize, settings := e.store(x.config, settings)
	n = max(minTrialKeys, n/rangeHole.period*rangeHole.period)
	entry := int64(x.config.KeySize + valueSize)
	settings.BatchKeys = int(min(batchKeys, max(1, settings.MemtableBytes/batchShare/entry)))
	start := x.config.start(name, dir, n)
	start.ValueSize, start.Watch = valueSize, e.Large
	start.Random = e.Large && x.config.Large.Values == RandomValues
	c, err := startChild(ctx, x.config.Worker, start)
	if err != nil {
		return err
	}
	defer func() {
		c.kill()
		_ = os.RemoveAll(dir) // and else with the directory above
	}()
	t := &trial{run: x, child: c, name: name, compression: compression, open: opening(settings), keys: n,
		entryBytes: entry}
	if _, err := c.do(ctx, t.open); err != nil {
		return err
	}
	for i := range e.Steps {
		if err := t.do(ctx, &e.Steps[i]); err != nil {
			return err
		}
	}
	return c.stop(ctx)
}

func (t *trial) chosen(phase string) bool {
	return slices.ContainsFunc(t.run.phases, func(p Phase) bool { return p.Name == phase })
}

func (t *trial) add(phase string, s *Sample) {
	for _, p := range t.run.of(ownStore) {
		if p.Name == phase {
			t.run.add(p, t.name, t.compression, *s)
		}
	}
}

// do carries a step out, and adds what it measures to its phase.
func (t *trial) do(ctx context.Context, s *step) error {
	if s.Optional && (!t.chosen(s.Phase) || s.WithKeys && !engine.ScansKeys(t.name)) {
		return nil
	}
	j := s.job
	j.Lookups *= t.keys
	switch {
	case s.How == "ask":
		j.Seconds = t.run.config.Seconds
	case s.How == "rewrite" && j.Lookups == 0:
		j.Seconds = 60 * t.run.config.Large.Minutes
	}
	todo := task{Do: "job", Job: &j}
	switch s.How {
	case "fill":
		todo = task{Do: "load"}
	case "size":
		todo = task{Do: "sizes"}
	}
	var sample *Sample
	var err error
	if s.How == "fill" || s.How == "rewrite" {
		sample, err = t.filled(ctx, todo)
	} else {
		sample, err = t.child.do(ctx, todo)
	}
	if err != nil {
		return err
	}
	switch s.How {
	case "size":
		sample.Live, sample.Data = int64(t.keys)*t.entryBytes, t.open.Open.MemoryLimit
	case "rewrite": // all records are as they should be
		if _, err := t.child.do(ctx, lookingUp("scan", 0, 0)); err != nil {
			return err
		}
	}
	t.add(s.Phase, sample)
	return nil
}

// filled does something that writes, waits until nothing is left to compact, and returns
// both as one sample, with what was written and what the store takes.
func (t *trial) filled(ctx context.Context, write task) (*Sample, error) {
	sizes := task{Do: "sizes"}
	done, err := t.child.steps(ctx, task{Do: "mark"}, sizes, write, task{Do: "calm"}, sizes)
	if err != nil {
		return nil, err
	}
	before, s, calm, after := done[1], done[2], done[3], done[4]
	s.Seconds += calm.Seconds
	s.CPUSeconds += calm.CPUSeconds
	s.PerSecond = float64(s.Operations) / s.Seconds
	s.Written, s.OnDisk, s.Files = after.Written-before.Written, after.OnDisk, after.Files
	s.Peak, s.Base, s.Resident = after.Peak, after.Base, after.Resident
	s.PeakDisk = max(after.PeakDisk, after.OnDisk)
	s.Data, s.Live = s.Operations*t.entryBytes, int64(t.keys)*t.entryBytes
	return s, nil
}

// Large says what the stores with large values are.
type Large struct {
	ValueSize int     `json:"value_bytes"`
	Values    string  `json:"values"`     // of LargeValues
	Data      int64   `json:"data_bytes"` // of their keys and values, about
	Minutes   float64 `json:"minutes"`    // of the constant overwrites
}

// What large values are.
const (
	RandomValues = "random" // nothing compresses them
	HalfValues   = "half"   // a compressor reaches about one half
)

// LargeValues lists what Large.Values may be.
var LargeValues = []string{RandomValues, HalfValues}

const (
	leastLargeData = 1 << 20
	mostLargeData  = 1 << 40
	mostMinutes    = 24 * 60
)

// LargeEngines lists the engines for which large values make a difference, the one that is
// compared with the others first.
func LargeEngines() []string {
	return slices.DeleteFunc([]string{engine.SiftKVSeparatedName, engine.SiftKVTightName,
		engine.SiftKVCommitName, "siftkv", "pebble",
		engine.PebbleSeparatedName, engine.BadgerLogName, engine.RocksDBName, engine.RocksDBBlobsName, engine.LMDBName},
		func(name string) bool { return !slices.Contains(engine.Peers(), name) })
}

// IsLarge reports whether a workload is one of large values.
func IsLarge(workload string) bool {
	for _, e := range experiments {
		if e.Large && e.has(workload) {
			return true
		}
	}
	return false
}

func (l *Large) validate() error {
	if !(l.Minutes > 0 && l.Minutes <= mostMinutes) {
		return bench.Usagef("--minutes %v: want more than 0 and up to %d", l.Minutes, mostMinutes)
	}
	return cmp.Or(bench.CheckNames("--large-values", []string{l.Values}, LargeValues),
		bench.Within("--large-size", keys.MinValueSize, keys.MaxValueSize, l.ValueSize),
		bench.Within("--large-data", leastLargeData, mostLargeData, l.Data))
}

// keys returns how many keys there are, some at least.
func (l *Large) keys(keySize int) int {
	return int(min(l.Data/int64(keySize+l.ValueSize), math.MaxInt32))
}
