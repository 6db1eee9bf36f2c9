package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/page"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// batchKeys is the number of keys per batch of a load.
const batchKeys = 100

// A run is a run under way. It is used by one goroutine.
type run struct {
	config *Config
	dir    string
	stores []*store
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
		"seed %d", page.Count(c.Keys), c.KeySize, c.ValueSize, page.Times(c.Repetitions, "repetition"), c.Seconds,
		c.Seed)
	return c.measured("compare", about, c.Settings, func(r *tidy.Result, dir string) error {
		x := &run{config: c, dir: dir, result: r}
		ctx, cancel := context.WithCancel(ctx)
		defer func() {
			cancel()
			for _, s := range x.stores {
				if s.child != nil {
					s.child.kill()
				}
			}
		}()
		r.Notes = c.notes()
		return x.measure(ctx)
	})
}

// notes says what the engines are measured with.
func (c *Config) notes() []string {
	notes := []string{fmt.Sprintf("settings: cache %s, memtable %s, blocks of %s, Bloom filters of 10 bits per key, "+
		"batches of %d, no sync, %d compactions at most", page.Size(c.Store.CacheBytes),
		page.Size(c.Store.MemtableBytes), page.Size(c.Store.BlockBytes), batchKeys, c.Store.Compactions)}
	if slices.ContainsFunc(c.Workloads, IsLarge) {
		notes = append(notes, fmt.Sprintf("large: values of %s, %s, %s of them, separated from %s on, within %.4g of "+
			"what is needed", page.Size(c.Large.ValueSize), c.Large.Values, page.Size(c.Large.Data),
			page.Size(c.Store.SeparateFrom), c.Store.BlobSpace))
	}
	for _, name := range c.Engines {
		notes = append(notes, name+": "+engine.Notes(name))
	}
	return notes
}

// measure goes through the stages: those that only read with each compression, then
// those that write, and what needs a process of its own, with the first.
func (x *run) measure(ctx context.Context) error {
	first := x.config.Compressions[0]
	if len(x.of(ownStore)) == len(x.config.Workloads) { // nothing else is to be loaded
		return x.runExperiments(ctx, first)
	}
	for _, compression := range x.config.Compressions {
		stores, err := x.build(ctx, compression)
		if err != nil {
			return err
		}
		for st := usual; st < fresh; st++ {
			if err := x.stage(ctx, st, compression, stores); err != nil {
				return err
			}
		}
		for _, s := range stores { // gives the memory of its cache back
			if _, err := s.child.do(ctx, task{Do: "close"}); err != nil {
				return err
			}
		}
	}
	stores, err := x.build(ctx, first)
	if err != nil {
		return err
	}
	if err := x.restart(ctx, first, stores); err != nil {
		return err
	}
	for st := soon; st < stageEnd; st++ {
		if err := x.stage(ctx, st, first, stores); err != nil {
			return err
		}
	}
	for _, s := range stores { // gives the memory of its cache back
		if _, err := s.child.do(ctx, task{Do: "close"}); err != nil {
			return err
		}
	}
	return x.runExperiments(ctx, first)
}

// settings returns the settings of a stage.
func (x *run) settings(s stage, compression string) engine.Settings {
	o := x.config.Store
	o.Compression, o.BatchKeys, o.Durability = compression, batchKeys, engine.Soon
	switch s {
	case smallCache:
		o.CacheBytes = max(leastCache(o), x.config.dataBytes()/10)
	case largeCache:
		o.CacheBytes = max(o.CacheBytes, 2*x.config.dataBytes())
	case withOS:
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
	for _, p := range phases {
		if p.stage == s && slices.Contains(x.config.Workloads, p.Name) {
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
	if j.Kind == "heavy" {
		j.Seconds *= heavySeconds
	}
	sample, err := s.child.do(ctx, task{Do: "job", Job: &j})
	if err != nil {
		return err
	}
	x.add(p, s.engine, compression, *sample)
	if p.stage.writes() {
		_, err = s.child.do(ctx, task{Do: "rest"})
	}
	return err
}

// warm opens a store and fills its cache: with a key of every block in key order,
// then with random ones.
func (x *run) warm(ctx context.Context, st stage, s *store, settings engine.Settings) error {
	tasks := []task{opening(settings)}
	if st == largeCache {
		tasks = append(tasks, task{Do: "warm"})
	}
	if !st.writes() { // which would not find what was written since
		tasks = append(tasks, lookingUp("warmup", 2*x.config.Seconds, 0))
	}
	_, err := s.child.steps(ctx, tasks...)
	return err
}
