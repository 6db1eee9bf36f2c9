package compare

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// batchKeys is the number of keys per batch of a load.
const batchKeys = 100

// A run is a run under way. It is used by one goroutine.
type run struct {
	config *Config
	dir    string
	stores []*store
	phases []Phase // that are chosen
	result *tidy.Result
}

// Run measures what the config says. Its stores are in a temporary directory that is
// gone, like their processes, when it returns. A wrong answer ends the run with an
// error that matches bench.ErrWrongAnswer.
func Run(ctx context.Context, c *Config) (*tidy.Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Engines compared: %s keys of %d bytes, values of %d bytes, half compressible; %s of %g s, "+
		"seed %d", bench.Count(c.Keys), c.KeySize, c.ValueSize, bench.Times(c.Repetitions, "repetition"), c.Seconds,
		c.Seed)
	return c.measured("compare", about, c.Settings, func(r *tidy.Result, dir string) error {
		r.Notes = c.notes()
		x := &run{config: c, dir: dir, result: r, phases: slices.DeleteFunc(slices.Clone(phases),
			func(p Phase) bool { return !slices.Contains(c.Workloads, p.Name) })}
		return x.all(ctx)
	})
}

// all measures all phases. Its processes are gone when it returns.
func (x *run) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for _, s := range x.stores {
			if s.child != nil {
				s.child.kill()
			}
		}
	}()
	return x.measure(ctx)
}

func (c *Config) notes() []string {
	notes := []string{fmt.Sprintf("settings: cache %s, memtable %s, blocks of %s, Bloom filters of 10 bits per key, "+
		"batches of %d, no sync, %d compactions at most", bench.Bytes(c.Store.CacheBytes),
		bench.Bytes(c.Store.MemtableBytes), bench.Bytes(c.Store.BlockBytes), batchKeys, c.Store.Compactions)}
	if slices.ContainsFunc(c.Workloads, IsLarge) {
		notes = append(notes, fmt.Sprintf("large: values of %s, %s, %s of them, separated from %s on, within %.4g of "+
			"what is needed", bench.Bytes(c.Large.ValueSize), c.Large.Values, bench.Bytes(c.Large.Data),
			bench.Bytes(c.Store.SeparateFrom), c.Store.BlobSpace))
	}
	for _, name := range c.Engines {
		notes = append(notes, name+": "+engine.Notes(name))
	}
	return notes
}

// checkRoom refuses a run whose stores do not fit on the disk.
func (x *run) checkRoom() error {
	common, own := x.commonSpace(), x.ownSpace()
	err := bench.CheckRoom(x.dir, x.config.Keys, common+own)
	if err != nil && own > common && slices.ContainsFunc(x.config.Workloads, IsLarge) {
		return bench.Usagef("%w, or less with --large-data", err)
	}
	return err
}

// commonSpace returns what the stores of all engines and compressions may take, one of which is compacted; 0 if no
// chosen phase has them.
func (x *run) commonSpace() (need int64) {
	if x.onlyOwnStores() {
		return 0
	}
	c := x.config
	for _, compression := range c.Compressions {
		one := bench.SpaceOf(compression, c.dataBytes())
		need = max(need, one/2) + int64(len(c.Engines))*one/2
	}
	return need
}

// ownSpace returns what the largest store of the chosen experiments may take. There is one at a time.
func (x *run) ownSpace() (need int64) {
	c, chosen := x.config, x.of(ownStore)
	for _, e := range experiments {
		if !slices.ContainsFunc(chosen, func(p Phase) bool { return e.has(p.Name) }) {
			continue
		}
		compression := c.Compressions[0]
		if e.Large && c.Large.Values == RandomValues {
			compression = "none" // it would reach nothing
		}
		n, valueSize, _ := e.store(c, c.Store)
		need = max(need, bench.SpaceOf(compression, int64(n)*int64(c.KeySize+valueSize)))
	}
	return need
}

// onlyOwnStores reports whether each chosen phase has a store of its own.
func (x *run) onlyOwnStores() bool { return len(x.of(ownStore)) == len(x.phases) }

// measure goes through the stages: those that only read with each compression, then
// those that write, and what needs a process of its own, with the first.
func (x *run) measure(ctx context.Context) error {
	if err := x.checkRoom(); err != nil {
		return err
	}
	first := x.config.Compressions[0]
	if x.onlyOwnStores() { // nothing else is to be loaded
		return x.runExperiments(ctx, first)
	}
	for _, compression := range x.config.Compressions {
		stores, err := x.build(ctx, compression)
		if err != nil {
			return err
		}
		for _, st := range reading {
			if err := x.stage(ctx, st, compression, stores); err != nil {
				return err
			}
		}
		if err := closeAll(ctx, stores); err != nil {
			return err
		}
	}
	stores, err := x.build(ctx, first)
	if err != nil {
		return err
	}
	if err := x.restart(ctx, first, stores); err != nil {
		return err
	}
	for _, st := range writing {
		if err := x.stage(ctx, st, first, stores); err != nil {
			return err
		}
	}
	if err := closeAll(ctx, stores); err != nil {
		return err
	}
	return x.runExperiments(ctx, first)
}

// closeAll closes stores, which gives the memory of their caches back.
func closeAll(ctx context.Context, stores []*store) error {
	for _, s := range stores {
		if _, err := s.child.do(ctx, task{Do: "close"}); err != nil {
			return err
		}
	}
	return nil
}

func (x *run) settings(s stage, compression string) engine.Settings {
	o := x.config.Store
	o.Compression, o.BatchKeys, o.Durability = compression, batchKeys, engine.Soon
	switch s {
	case smallCache:
		o.CacheBytes = max(leastCache(o), x.config.dataBytes()/10)
	case largeCache:
		o.CacheBytes = max(o.CacheBytes, 2*x.config.dataBytes())
	case withOS, crowded:
		o.Durability = engine.WithOS
	case durable:
		o.Durability, o.Writers = engine.Durable, writers
	}
	return o
}

// leastCache is the smallest cache that keeps anything: with less than eight blocks that
// of SiftKV keeps none.
func leastCache(s engine.Settings) int64 { return max(64<<10, 8*int64(s.BlockBytes)) }

// of returns the chosen phases of a stage.
func (x *run) of(s stage) []Phase {
	var chosen []Phase
	for _, p := range x.phases {
		if p.Stage == s {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// stage opens every store as the stage wants it, warms it up, and then runs the
// phases: in each repetition every engine once, beginning with another one each
// time, so that none always follows the same.
func (x *run) stage(ctx context.Context, st stage, compression string, stores []*store) error {
	chosen := x.of(st)
	if st.writes() { // a reader of this one does not see what is written
		stores = slices.DeleteFunc(slices.Clone(stores),
			func(s *store) bool { return s.engine == engine.PebbleIteratorName })
	}
	if len(chosen) == 0 {
		return nil
	}
	settings := x.settings(st, compression)
	for _, s := range stores {
		phase := x.config.Progress.Start("warm up "+s.engine, 0, "")
		if err := x.warm(ctx, st, s, settings); err != nil {
			return err
		}
		phase.Done()
	}
	for _, p := range chosen {
		phase := x.config.Progress.Start(p.Title, 0, "")
		for rep := range x.config.Repetitions {
			for i := range stores {
				s := stores[(i+rep)%len(stores)]
				if err := x.turn(ctx, p, s, compression, rep); err != nil {
					return fmt.Errorf("%s: %w", p.Name, err)
				}
			}
		}
		phase.Done()
	}
	return nil
}

// turn runs a phase once on one store, and lets it finish what it does in the
// background before the next has its turn.
func (x *run) turn(ctx context.Context, p Phase, s *store, compression string, rep int) error {
	j := p.job
	j.Seconds, j.Pass = x.config.Seconds, uint64(rep)
	switch {
	case j.Kind == "heavy":
		j.Seconds *= heavySeconds
	case p.Stage == unsettled: // the store settles meanwhile
		j.Seconds = min(j.Seconds, 0.3)
	}
	sample, err := s.child.do(ctx, task{Do: "job", Job: &j})
	if err != nil {
		return err
	}
	x.add(p, s.engine, compression, *sample)
	if p.Stage.writes() {
		_, err = s.child.do(ctx, task{Do: "rest"})
	}
	return err
}

// warm opens a store and fills its cache: with a key of every block in key order,
// then with random ones.
func (x *run) warm(ctx context.Context, st stage, s *store, settings engine.Settings) error {
	tasks := []task{opening(settings)}
	if st == largeCache || st == crowded {
		tasks = append(tasks, task{Do: "warm"})
	}
	if !st.writes() { // which would not find what was written since
		tasks = append(tasks, lookingUp("warmup", 2*x.config.Seconds, 0))
	}
	_, err := s.child.steps(ctx, tasks...)
	return err
}

// A store is one engine with one compression, in a process of its own.
type store struct {
	engine      string
	compression string // "" if the engine has none: one store stands for all
	dir         string
	child       *child
}

func (x *run) find(name, compression string) *store {
	if !engine.LogStructured(name) {
		compression = ""
	}
	for _, s := range x.stores {
		if s.engine == name && s.compression == compression {
			return s
		}
	}
	return nil
}

// build loads the stores of a compression and leaves them settled and open.
func (x *run) build(ctx context.Context, compression string) ([]*store, error) {
	var stores, missing []*store
	for _, name := range x.config.Engines {
		s := x.find(name, compression)
		if s == nil { // else it was loaded before
			s = &store{engine: name, compression: compression}
			if !engine.LogStructured(name) {
				s.compression = ""
			}
			missing = append(missing, s)
			x.stores = append(x.stores, s)
		}
		stores = append(stores, s)
	}
	for rep := range x.config.Loads {
		for i := range missing {
			s := missing[(i+rep)%len(missing)]
			if rep > 0 && !engine.LogStructured(s.engine) {
				continue
			}
			if err := x.load(ctx, s, compression, rep); err != nil {
				return nil, err
			}
		}
	}
	return stores, nil
}

// load fills a new store of s, in a new process, and settles it.
func (x *run) load(ctx context.Context, s *store, compression string, rep int) error {
	if s.child != nil {
		if err := s.child.stop(ctx); err != nil {
			return err
		}
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	c := x.config
	s.dir = filepath.Join(x.dir, fmt.Sprintf("%s-%s-%d", s.engine, compression, rep))
	var err error
	if s.child, err = startChild(ctx, c.Worker, c.start(s.engine, s.dir, c.Keys)); err != nil {
		return err
	}
	phase := c.Progress.Start(fmt.Sprintf("load %s, %s", s.engine, compression), c.Keys, "keys")
	open := opening(x.settings(loading, compression))
	before, err := s.child.steps(ctx, open, task{Do: "sizes"}, task{Do: "load"})
	if err != nil {
		return err
	}
	for _, p := range x.of(unsettled) {
		if err := x.turn(ctx, p, s, compression, rep); err != nil {
			return err
		}
	}
	// Opened again, the store has no memtable left.
	after, err := s.child.steps(ctx, task{Do: "settle"}, task{Do: "sizes"}, open, task{Do: "resettle"},
		task{Do: "sizes"})
	if err != nil {
		return err
	}
	first, loaded, settled, last, sizes := before[1], before[2], after[0], after[1], after[4]
	phase.Done()
	done := Sample{
		Operations: int64(c.Keys), Seconds: loaded.Seconds + settled.Seconds,
		PerSecond:  float64(c.Keys) / (loaded.Seconds + settled.Seconds),
		CPUSeconds: loaded.CPUSeconds + settled.CPUSeconds,
		Written:    last.Written - first.Written, OnDisk: sizes.OnDisk, Files: sizes.Files,
		Peak: last.Peak, Base: last.Base,
	}
	of, data := tidy.Of("engine", s.engine, "compression", compression), float64(c.dataBytes())
	x.result.Append(of, "load", "s", loaded.Seconds)    // until the last batch was accepted
	x.result.Append(of, "settle", "s", settled.Seconds) // from then on, without the lookups in between
	x.result.Append(of, "processor-time", "s", done.CPUSeconds)
	x.result.Append(of, "written", "bytes of data", float64(done.Written)/data)
	x.result.Append(of, "disk", "bytes of data", float64(done.OnDisk)/data) // settled, and opened again
	x.result.Append(of, "files", "", float64(done.Files))
	for _, p := range x.of(loading) {
		x.add(p, s.engine, compression, done)
	}
	return nil
}

// start tells a worker which store it has, with n keys.
func (s *Settings) start(engine, dir string, n int) *startTask {
	return &startTask{Engine: engine, Dir: []byte(dir), Keys: n, KeySize: s.KeySize, ValueSize: s.ValueSize,
		Seed: s.Seed}
}

// restart runs the fresh stage: in each repetition every store gets a new process,
// which opens it, looks keys up for a while, and then says how much memory it has.
func (x *run) restart(ctx context.Context, compression string, stores []*store) error {
	chosen := x.of(fresh)
	for rep := range x.config.Repetitions {
		if len(chosen) == 0 {
			return nil
		}
		phase := x.config.Progress.Start("open, memory", 0, "")
		for i := range stores {
			s := stores[(i+rep)%len(stores)]
			err := s.child.stop(ctx)
			if err != nil {
				return err
			}
			s.child, err = startChild(ctx, x.config.Worker, x.config.start(s.engine, s.dir, x.config.Keys))
			if err != nil {
				return err
			}
			samples, err := s.child.steps(ctx, opening(x.settings(fresh, compression)),
				lookingUp("warmup", 2*x.config.Seconds, 0), task{Do: "sizes"})
			if err != nil {
				return err
			}
			for _, p := range chosen {
				sample := samples[0]
				if p.Name == "memory" {
					sample = samples[2]
				}
				x.add(p, s.engine, compression, *sample)
			}
		}
		phase.Done()
	}
	return nil
}

// A Setup is what every experiment needs of the program that it is a part of. Every field is
// needed but Dir and Argv.
type Setup struct {
	Dir      string // where a temporary directory is made; empty: the system's
	Argv     []string
	Progress *progress.Reporter
	Worker   []string // the command line that runs Serve on standard input and output
}

// measured runs an experiment in a temporary directory, and returns its result.
func (s *Setup) measured(experiment, about string, settings any, run func(r *tidy.Result, dir string) error) (
	*tidy.Result, error) {
	return tidy.Measure(experiment, about, settings, s.Argv, s.Dir, run)
}

const (
	minKeys = 1000
	maxKeys = 1 << 30
)

// checkEngines reports the first name that is no peer's, and how to get it if that is possible.
func checkEngines(names []string) error {
	for _, name := range names {
		if err := engine.CheckName("--engine", name, engine.Peers()); err != nil {
			return err
		}
	}
	return bench.CheckNames("--engine", names, engine.Peers())
}

// checkStores reports the first number of keys, size or setting of stores that makes no sense.
func checkStores(sizes []int, keySize, valueSize int, settings engine.Settings) error {
	for _, n := range sizes {
		err := bench.Within("--keys", minKeys, maxKeys, n)
		if err == nil {
			_, err = newKeyspace(&startTask{Keys: n, KeySize: keySize, ValueSize: valueSize})
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(bench.CheckNames("--compression", []string{settings.Compression}, Compressions), settings.Check("--"))
}
