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

// Sizes of the stores of phases that have one of their own, as parts of the keys of the run.
const (
	middleValue   = 1 << 10
	middleKeys    = 30 // about a third of the bytes
	tombstoneKeys = 30
	counterKeys   = 1500
	limitKeys     = 3
	minTrialKeys  = 400
	overwrites    = 3  // of each record
	additions     = 50 // to each counter
	trialMemtable = 8  // the data of these small stores is 8 memtables
	largeMemtable = 2  // the same of stores with large values, which are not as small
	limitShare    = 4  // of the data that MemoryLimit has
	leastLimit    = 4 << 20
	leastMemtable = 64 << 10
	batchShare    = 10 // of a memtable that a batch may have: Badger takes no more than a seventh
)

// An experiment is some phases with a store of their own, which each engine makes anew for
// them, in a process of its own.
type experiment struct {
	steps  []step
	ranges bool // only for engines that have range tombstones
	large  bool // values are as Settings.Large has them, and the space that they take is watched
	// store returns the number of keys, the size of a value, and the settings, for those
	// of other stores.
	store func(c *Config, s engine.Settings) (keys, valueSize int, settings engine.Settings)
}

// A step of an experiment is measured for a phase, or done for those that come after it.
type step struct {
	phase string // empty: none
	how   how
	job   job // its Lookups are for each key
	// optional is done only if its phase is chosen, and by engines that can
	optional bool
	can      func(engine string) bool // nil: all
}

// A how is a way to carry a step out.
type how int

const (
	filling   how = iota // the load, with the wait until nothing is left to compact
	rewriting            // likewise a job that writes; then everything is scanned
	doing                // a job as it is
	asking               // a job for the usual time
	sizing               // what the process takes then, against the memory limit
)

// experiments are made one after the other.
var experiments = []experiment{
	{large: true,
		steps: []step{{phase: "large-load"},
			{phase: "large-overwrite", how: rewriting, job: job{Kind: "replace", Lookups: overwrites}},
			{phase: "large-get", how: asking, job: job{Kind: "replaced"}},
			{phase: "large-scan", how: asking, job: job{Kind: "scan"}},
			{phase: "large-keys", how: asking, job: job{Kind: "scan-keys"}, optional: true, can: engine.ScansKeys},
			{phase: "large-churn", how: rewriting, job: job{Kind: "replace"}, optional: true}},
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			s.Inline = true // where it is not what an engine is there for
			return c.Large.keys(c.KeySize), c.Large.ValueSize, s
		}},
	{steps: []step{{}, {phase: "overwrite", how: rewriting, job: job{Kind: "overwrite", Lookups: overwrites}}},
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			return c.Keys / middleKeys, middleValue, s
		}},
	// What is left and what is not is looked for before the store has been compacted.
	{store: small, steps: []step{{}, {phase: "delete", how: doing, job: job{Kind: "delete"}},
		{phase: "deleted-scan", how: asking, job: job{Kind: "scan", Limit: 10}},
		{phase: "deleted-get", how: asking, job: job{Kind: "gone"}}}},
	{store: small, ranges: true, steps: []step{{}, {phase: "delete-range", how: doing, job: job{Kind: "delete-ranges"}},
		{phase: "deleted-range-scan", how: asking, job: job{Kind: "scan", Limit: 10}},
		{phase: "deleted-range-get", how: asking, job: job{Kind: "gone"}}}},
	{steps: []step{{phase: "counter", how: doing, job: job{Kind: "add", Lookups: additions}},
		{phase: "counter-get", how: asking, job: job{Kind: "counters"}}},
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			s.Counters = true
			return c.Keys / counterKeys, c.ValueSize, s
		}},
	{steps: []step{{}, {how: asking, job: job{Kind: "absent"}}, {how: asking, job: job{Kind: "existing"}},
		{how: doing, job: job{Kind: "scan"}}, {phase: "limit", how: sizing}},
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			n := c.Keys / limitKeys
			data := int64(n) * int64(c.KeySize+c.ValueSize)
			return n, c.ValueSize, s.WithMemoryLimit(max(leastLimit, data/limitShare))
		}},
}

// has reports whether a phase is one of the experiment.
func (e *experiment) has(phase string) bool {
	return slices.ContainsFunc(e.steps, func(s step) bool { return phase != "" && s.phase == phase })
}

// small is a store for tombstones.
func small(c *Config, s engine.Settings) (int, int, engine.Settings) {
	return c.Keys / tombstoneKeys, c.ValueSize, s
}

// A trial is one engine in an experiment under way.
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
				if name == engine.PebbleIteratorName || e.ranges && !engine.DeletesRanges(name) ||
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

// trial runs an experiment with one engine.
func (x *run) trial(ctx context.Context, e *experiment, name, compression string) error {
	dir := filepath.Join(x.dir, name+"-trial")
	settings := x.settings(loading, compression)
	share := int64(trialMemtable)
	if e.large {
		share = largeMemtable
	}
	settings.MemtableBytes = max(leastMemtable, settings.MemtableBytes/share)
	n, valueSize, settings := e.store(x.config, settings)
	n = max(minTrialKeys, n/rangeHole.period*rangeHole.period)
	entry := int64(x.config.KeySize + valueSize)
	settings.BatchKeys = int(min(batchKeys, max(1, settings.MemtableBytes/batchShare/entry)))
	start := x.config.start(name, dir, n)
	start.ValueSize, start.Watch = valueSize, e.large
	start.Random = e.large && x.config.Large.Values == RandomValues
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
	for i := range e.steps {
		if err := t.do(ctx, &e.steps[i]); err != nil {
			return err
		}
	}
	return c.stop(ctx)
}

// chosen reports whether a phase is to be measured.
func (t *trial) chosen(phase string) bool {
	return slices.ContainsFunc(t.run.phases, func(p Phase) bool { return p.Name == phase })
}

// add adds a sample to a phase, if it is chosen.
func (t *trial) add(phase string, s *Sample) {
	for _, p := range t.run.of(ownStore) {
		if p.Name == phase {
			t.run.add(p, t.name, t.compression, *s)
		}
	}
}

// do carries a step out, and adds what it measures to its phase.
func (t *trial) do(ctx context.Context, s *step) error {
	if s.optional && (!t.chosen(s.phase) || s.can != nil && !s.can(t.name)) {
		return nil
	}
	j := s.job
	j.Lookups *= t.keys
	switch {
	case s.how == asking:
		j.Seconds = t.run.config.Seconds
	case s.how == rewriting && j.Lookups == 0:
		j.Seconds = 60 * t.run.config.Large.Minutes
	}
	todo := task{Do: "job", Job: &j}
	switch s.how {
	case filling:
		todo = task{Do: "load"}
	case sizing:
		todo = task{Do: "sizes"}
	}
	var sample *Sample
	var err error
	if s.how == filling || s.how == rewriting {
		sample, err = t.filled(ctx, todo)
	} else {
		sample, err = t.child.do(ctx, todo)
	}
	if err != nil {
		return err
	}
	switch s.how {
	case sizing:
		sample.Live, sample.Data = int64(t.keys)*t.entryBytes, t.open.Open.MemoryLimit
	case rewriting: // all records are as they should be
		if _, err := t.child.do(ctx, lookingUp("scan", 0, 0)); err != nil {
			return err
		}
	}
	t.add(s.phase, sample)
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

// Bounds of a Large.
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
		if e.large && e.has(workload) {
			return true
		}
	}
	return false
}

func (l *Large) validate() error {
	if !(l.Minutes > 0 && l.Minutes <= mostMinutes) {
		return bench.Usagef("--minutes %v: want more than 0 and up to %d", l.Minutes, mostMinutes)
	}
	return cmp.Or(bench.CheckNames("--large-values", []string{l.Values}, LargeValues), bench.CheckBounds(
		bench.Bound{Flag: "--large-size", Value: int64(l.ValueSize), Low: keys.MinValueSize, High: keys.MaxValueSize},
		bench.Bound{Flag: "--large-data", Value: l.Data, Low: leastLargeData, High: mostLargeData}))
}

// keys returns how many keys there are, some at least.
func (l *Large) keys(keySize int) int {
	return int(min(l.Data/int64(keySize+l.ValueSize), math.MaxInt32))
}
