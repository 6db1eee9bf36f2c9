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
	phases []string
	ranges bool // only for engines that have range tombstones
	large  bool // values are as Settings.Large has them, and the space that they take is watched
	// run carries tasks out on an open store and adds what they measure to the phases.
	run func(t *trial, ctx context.Context) error
	// store returns the number of keys, the size of a value, and the settings, for those
	// of other stores.
	store func(c *Config, s engine.Settings) (keys, valueSize int, settings engine.Settings)
}

// experiments are made one after the other.
var experiments = []experiment{
	{phases: []string{"large-load", "large-overwrite", "large-get", "large-scan", "large-keys", "large-churn"},
		large: true, run: (*trial).large,
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			s.Inline = true // where it is not what an engine is there for
			return c.Large.keys(c.KeySize), c.Large.ValueSize, s
		}},
	{phases: []string{"overwrite"}, run: (*trial).overwrite,
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			return c.Keys / middleKeys, middleValue, s
		}},
	{phases: []string{"delete", "deleted-scan", "deleted-get"}, run: (*trial).deletePoints, store: small},
	{phases: []string{"delete-range", "deleted-range-scan", "deleted-range-get"}, ranges: true,
		run: (*trial).deleteRanges, store: small},
	{phases: []string{"counter", "counter-get"}, run: (*trial).counters,
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			s.Counters = true
			return c.Keys / counterKeys, c.ValueSize, s
		}},
	{phases: []string{"limit"}, run: (*trial).limit,
		store: func(c *Config, s engine.Settings) (int, int, engine.Settings) {
			n := c.Keys / limitKeys
			data := int64(n) * int64(c.KeySize+c.ValueSize)
			return n, c.ValueSize, s.WithMemoryLimit(max(leastLimit, data/limitShare))
		}},
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
		if !slices.ContainsFunc(chosen, func(p Phase) bool { return slices.Contains(e.phases, p.Name) }) {
			continue
		}
		phase := x.config.Progress.Start(e.phases[0], 0, "")
		for rep := range x.config.Loads {
			for i := range x.config.Engines {
				name := x.config.Engines[(i+rep)%len(x.config.Engines)]
				if name == engine.PebbleIteratorName || e.ranges && !engine.DeletesRanges(name) ||
					rep > 0 && !engine.LogStructured(name) {
					continue
				}
				if err := x.trial(ctx, &e, name, compression); err != nil {
					return fmt.Errorf("%s: %w", e.phases[0], err)
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
	c, err := startChild(ctx, name, x.config.Worker)
	if err != nil {
		return err
	}
	defer func() {
		c.kill()
		_ = os.RemoveAll(dir) // and else with the directory above
	}()
	t := &trial{run: x, child: c, name: name, compression: compression, open: opening(settings), keys: n,
		entryBytes: entry}
	start := x.config.start(name, dir, n)
	start.Start.ValueSize, start.Start.Watch = valueSize, e.large
	start.Start.Random = e.large && x.config.Large.Values == RandomValues
	if _, err = c.steps(ctx, start, t.open); err != nil {
		return err
	}
	if err := e.run(t, ctx); err != nil {
		return err
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

// ask runs a job for the usual time and adds it to a phase.
func (t *trial) ask(ctx context.Context, phase string, j job) error {
	j.Seconds = t.run.config.Seconds
	s, err := t.child.do(ctx, task{Do: "job", Job: &j})
	if err == nil {
		t.add(phase, s)
	}
	return err
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

// load fills the store.
func (t *trial) load(ctx context.Context) (*Sample, error) {
	return t.filled(ctx, task{Do: "load"})
}

// rewrite overwrites records, and checks that all are as they should be.
func (t *trial) rewrite(ctx context.Context, phase string, j job) error {
	s, err := t.filled(ctx, task{Do: "job", Job: &j})
	if err != nil {
		return err
	}
	t.add(phase, s)
	_, err = t.child.do(ctx, lookingUp("scan", 0, 0))
	return err
}

// overwrite has values of middling size.
func (t *trial) overwrite(ctx context.Context) error {
	if _, err := t.load(ctx); err != nil {
		return err
	}
	return t.rewrite(ctx, "overwrite", job{Kind: "overwrite", Lookups: overwrites * t.keys})
}

func (t *trial) deletePoints(ctx context.Context) error {
	return t.deleted(ctx, "delete", "delete", "deleted-scan", "deleted-get")
}

func (t *trial) deleteRanges(ctx context.Context) error {
	return t.deleted(ctx, "delete-ranges", "delete-range", "deleted-range-scan", "deleted-range-get")
}

// deleted loads keys, deletes most, and looks for what is left and for what is not, before
// the store has been compacted.
func (t *trial) deleted(ctx context.Context, kind, phase, scan, get string) error {
	if _, err := t.load(ctx); err != nil {
		return err
	}
	s, err := t.child.do(ctx, task{Do: "job", Job: &job{Kind: kind}})
	if err != nil {
		return err
	}
	t.add(phase, s)
	if err := t.ask(ctx, scan, job{Kind: "scan", Limit: 10}); err != nil {
		return err
	}
	return t.ask(ctx, get, job{Kind: "gone"})
}

// counters adds to counters, and looks them up.
func (t *trial) counters(ctx context.Context) error {
	s, err := t.child.do(ctx, task{Do: "job", Job: &job{Kind: "add", Lookups: additions * t.keys}})
	if err != nil {
		return err
	}
	t.add("counter", s)
	return t.ask(ctx, "counter-get", job{Kind: "counters"})
}

// limit loads data of several times the memory limit, looks it up, and scans it.
func (t *trial) limit(ctx context.Context) error {
	if _, err := t.load(ctx); err != nil {
		return err
	}
	samples, err := t.child.steps(ctx, lookingUp("absent", t.run.config.Seconds, 0),
		lookingUp("existing", t.run.config.Seconds, 0), lookingUp("scan", 0, 0), task{Do: "sizes"})
	if err != nil {
		return err
	}
	sizes := samples[3]
	sizes.Live, sizes.Data = int64(t.keys)*t.entryBytes, t.open.Open.Settings.MemoryLimit
	t.add("limit", sizes)
	return nil
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
		if e.large && slices.Contains(e.phases, workload) {
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

// large loads a store of large values and overwrites them at random; looks up and scans what it
// has then; and overwrites on and on.
func (t *trial) large(ctx context.Context) error {
	s, err := t.load(ctx)
	if err != nil {
		return err
	}
	t.add("large-load", s)
	if err := t.rewrite(ctx, "large-overwrite", job{Kind: "replace", Lookups: overwrites * t.keys}); err != nil {
		return err
	}
	if err := t.ask(ctx, "large-get", job{Kind: "replaced"}); err != nil {
		return err
	}
	if err := t.ask(ctx, "large-scan", job{Kind: "scan"}); err != nil {
		return err
	}
	if t.chosen("large-keys") && engine.ScansKeys(t.name) {
		if err := t.ask(ctx, "large-keys", job{Kind: "scan-keys"}); err != nil {
			return err
		}
	}
	if !t.chosen("large-churn") {
		return nil
	}
	return t.rewrite(ctx, "large-churn", job{Kind: "replace", Seconds: 60 * t.run.config.Large.Minutes})
}
