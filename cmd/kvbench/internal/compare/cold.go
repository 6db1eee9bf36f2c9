package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// ColdSizes returns numbers of keys up to limit, each ten times the one before.
func ColdSizes(limit int) []int {
	sizes := []int{limit}
	for n := limit / 10; n >= minKeys && len(sizes) < 3; n /= 10 {
		sizes = append(sizes, n)
	}
	slices.Reverse(sizes)
	return sizes
}

// Trees in which a store is asked.
const (
	TreeCalm    = "as loaded" // the levels that came of the load
	TreeSettled = "settled"   // one sorted run
)

func (c *Config) validateCold() error {
	for _, name := range c.Variants {
		if _, err := parseVariant(name); err != nil {
			return err
		}
	}
	if len(c.Variants) == 0 {
		return bench.Usagef("--variant: nothing to measure")
	}
	return cmp.Or(checkEngines(c.Engines), bench.CheckTwice("--variant", c.Variants),
		bench.Within("--memory", 4<<20, 1<<40, c.Memory), bench.Within("--lookups", 1, 1<<30, c.Lookups),
		checkStores(c.Sizes, c.KeySize, c.ValueSize, c.Store.WithMemoryLimit(c.Memory)))
}

// checkMemory refuses a run whose files would be in memory.
func checkMemory(dir string) error {
	state, err := measure.DropCaches(dir)
	if err != nil {
		return err
	}
	if state.Impossible != "" {
		return bench.Usagef("--cold: %s", state.Impossible)
	}
	return nil
}

// checkLargest refuses a run whose largest store does not fit on the disk, with some memory that is written out.
func (c *Config) checkLargest(dir string, memory int64) error {
	n := slices.Max(c.Sizes)
	return bench.CheckRoom(dir, n, bench.SpaceOf(c.Store.Compression, c.bytesOf(n))+memory)
}

// Cold measures every engine at every size, one store at a time. Stores are in a temporary
// directory and gone, like their processes, when it returns.
func Cold(ctx context.Context, c *Config) (*tidy.Result, error) {
	if err := c.validateCold(); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Larger than memory: keys of %d bytes, values of %d bytes, compression %s; memory limit %s "+
		"for each store; %s lookups of each kind, with nothing in the page cache; seed %d", c.KeySize, c.ValueSize,
		c.Store.Compression, bench.Size(c.Memory), bench.Count(c.Lookups), c.Seed)
	return c.measured("cold", about, c.Settings, func(r *tidy.Result, dir string) error {
		if err := cmp.Or(checkMemory(dir), c.checkLargest(dir, c.Memory)); err != nil {
			return err
		}
		for _, n := range c.Sizes {
			for _, name := range c.Engines {
				for _, v := range c.variantsOf(name, n) {
					s := coldStore{config: c, result: r, engine: name, variant: v, keys: n,
						dir: filepath.Join(dir, "store")}
					if err := s.point(ctx); err != nil {
						return fmt.Errorf("%d keys: %w", n, err)
					}
				}
			}
		}
		return nil
	})
}

// variantsOf returns the variants of an engine that are measured with n keys.
func (c *Config) variantsOf(name string, n int) []variant {
	if name != "siftkv" {
		return []variant{{}}
	}
	var variants []variant
	for i, text := range c.Variants {
		if i > 0 && n < slices.Max(c.Sizes) {
			break
		}
		v, _ := parseVariant(text) // as validated
		variants = append(variants, v)
	}
	return variants
}

type coldStore struct {
	config  *Config
	result  *tidy.Result
	engine  string
	variant variant
	keys    int
	dir     string
}

// name is that of an engine that asks the store, with the variant.
func (s *coldStore) name(engine string) string {
	if s.variant.name == "" || s.variant.name == UsualVariant {
		return engine
	}
	return engine + " " + s.variant.name
}

// point measures the store, and removes it. It has a process to be loaded in, one to be
// settled in, and one for the lookups in each of its trees.
func (s *coldStore) point(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	sizes := task{Do: "sizes"}
	loaded, err := s.in(ctx, "load", s.engine, opening(s.settings()), sizes, task{Do: "load"}, task{Do: "calm"}, sizes)
	if err != nil {
		return err
	}
	if err := s.ask(ctx, TreeCalm); err != nil {
		return err
	}
	settled, err := s.in(ctx, "settle", s.engine, opening(s.settings()), sizes, task{Do: "settle"}, sizes)
	if err != nil {
		return err
	}
	before, load, calm, after := loaded[1], loaded[2], loaded[3], loaded[4]
	of := tidy.Of("engine", s.name(s.engine), "keys", s.keys)
	add := func(metric, unit string, x float64) { s.result.Add(of, metric, unit, x) }
	add("data", "bytes", float64(s.config.bytesOf(s.keys)))
	add("load", "s", load.Seconds) // until the last batch was accepted
	add("calm", "s", calm.Seconds) // from then on, until there was nothing left to compact
	add("settle", "s", settled[2].Seconds)
	add("processor-time", "s", load.CPUSeconds+calm.CPUSeconds) // of these two, as are the next
	add("written", "bytes", float64(after.Written-before.Written))
	add("peak-memory", "bytes", float64(after.Peak))
	add("settle-written", "bytes", float64(settled[3].Written-settled[1].Written))
	add("peak-disk", "bytes", float64(max(after.PeakDisk, settled[3].PeakDisk)))
	return s.ask(ctx, TreeSettled)
}

// settings returns those of every process that has the store.
func (s *coldStore) settings() engine.Settings {
	o := s.variant.apply(s.config.Store.WithMemoryLimit(s.config.Memory), s.keys)
	o.BatchKeys, o.Durability = batchKeys, engine.Soon
	return o
}

// in carries out tasks in a new process, in which the store is that of a named engine.
func (s *coldStore) in(ctx context.Context, what, name string, tasks ...task) ([]*Sample, error) {
	phase := s.config.Progress.Start(fmt.Sprintf("%s %s", what, s.name(name)), s.keys, "keys")
	start := s.config.start(name, s.dir, s.keys)
	start.Chill = true
	samples, err := inProcess(ctx, s.config.Worker, start, tasks)
	if err == nil {
		phase.Done()
	}
	return samples, err
}

// ask opens the store with nothing in the page cache and looks keys up: a store of Pebble
// by Get, which does not ask the filters of the last level, and by an iterator that does.
func (s *coldStore) ask(ctx context.Context, tree string) error {
	names := []string{s.engine}
	if s.engine == "pebble" {
		names = append(names, engine.PebbleIteratorName)
	}
	for _, name := range names {
		if err := s.askAs(ctx, name, tree); err != nil {
			return err
		}
	}
	return nil
}

// askAs asks the store as a named engine does, and adds a cell for the store in its tree.
func (s *coldStore) askAs(ctx context.Context, name, tree string) error {
	lookUp := func(kind string, pass uint64) task {
		return task{Do: "job", Job: &job{Kind: "cold-" + kind, Lookups: s.config.Lookups, Pass: pass}}
	}
	samples, err := s.in(ctx, "look up, "+tree+", in", name, task{Do: "drop"}, opening(s.settings()),
		lookUp("absent", 0), lookUp("existing", 0), // filters, indexes and some blocks come into the store's memory
		lookUp("absent", 1), lookUp("existing", 1), task{Do: "sizes"}, task{Do: "tree"})
	if err != nil {
		return err
	}
	opened, sizes, about := samples[1], samples[6], samples[7].Tree
	of := tidy.Of("engine", s.name(name), "tree", tree, "keys", s.keys)
	add := func(metric, unit string, x float64) { s.result.Add(of, metric, unit, x) }
	known := func(metric, unit string, n engine.Count, of float64) {
		if n.Known() {
			add(metric, unit, float64(n)/of)
		}
	}
	add("open", "s", opened.Seconds)
	add("runs", "", float64(about.Shape.Runs))
	add("files", "", float64(about.Shape.Files))
	add("entries", "", float64(about.Shape.Entries))
	add("disk", "bytes", float64(sizes.OnDisk))
	add("filters", "bits/key", about.Shape.BitsPerKey())
	add("indexes", "bytes", float64(about.Shape.IndexBytes))
	known("filter-memory", "bytes", about.Usage.FilterMemory, 1)
	known("index-memory", "bytes", about.Usage.IndexMemory, 1)
	known("cache-memory", "bytes", about.Usage.CacheMemory, 1)
	add("peak-memory", "bytes", float64(sizes.Peak))
	add("base-memory", "bytes", float64(sizes.Base)) // before the store was opened
	for i, kind := range []string{"absent", "existing"} {
		l := samples[4+i]
		n := float64(l.Operations)
		add(kind+" lookups", "", n)
		known(kind+" reads", "per lookup", l.Lookups.FromDisk(), n)
		known(kind+" bytes", "per lookup", l.Lookups.BytesFromDisk, n)
		known(kind+" device-bytes", "per lookup", l.Device.Bytes, n)
		known(kind+" requests", "per lookup", l.Device.Requests, n)
		for _, q := range []struct {
			name  string
			nanos int64
		}{{" p50", l.P50}, {" p99", l.P99}, {" p99.9", l.P999}, {" max", l.Max}} {
			add(kind+q.name, "ns", float64(q.nanos))
		}
	}
	return nil
}

// treeSample describes the files of a store and what it keeps of them in memory.
type treeSample struct {
	Shape engine.LevelShape `json:"shape"` // of all levels
	Usage engine.Usage      `json:"usage"`
}

func (w *worker) tree() (*Sample, error) {
	shape, err := w.store.Shape()
	if err != nil {
		return nil, err
	}
	t := &treeSample{Shape: shape.Total(), Usage: engine.UnknownUsage()}
	if m, ok := w.store.(engine.Meter); ok {
		t.Usage = m.Usage()
	}
	return &Sample{Tree: t}, nil
}

// calm waits until the store finds nothing more to compact. A store that cannot be asked
// for that is settled.
func (w *worker) calm(ctx context.Context) (*Sample, error) {
	return w.timed(func() error {
		if s, ok := w.store.(measure.RestingStore); ok {
			return s.Rest(ctx)
		}
		return w.store.Settle(ctx)
	})
}

// drop takes the files out of the page cache.
func (w *worker) drop() error {
	state, err := measure.DropCaches(string(w.start.Dir))
	if err == nil && state.Impossible != "" {
		err = errors.New(state.Impossible)
	}
	return err
}

// chillInterval is how often the files of a store that is written are taken out of the
// page cache: what a device writes meanwhile is little beside any machine's memory.
const chillInterval = 250 * time.Millisecond

// watchInterval is how often the space of files is looked at that are not kept out of the page
// cache: a few system calls for each file.
const watchInterval = 20 * time.Millisecond

// watched does something while the files of the store are kept out of the page cache, if the
// store is to be cold, and notes what they take at most, then or if they are to be watched.
func (w *worker) watched(f func() (*Sample, error)) (*Sample, error) {
	if !w.start.Chill && !w.start.Watch {
		return f()
	}
	stop, ended := make(chan struct{}), make(chan error)
	go func() { ended <- w.watch(stop) }()
	s, err := f()
	close(stop)
	if err := errors.Join(err, <-ended); err != nil {
		return nil, err
	}
	return s, nil
}

// watch notes the space of the files until stop is closed, and keeps them out of the page cache
// if it is to.
func (w *worker) watch(stop <-chan struct{}) error {
	dir, interval := string(w.start.Dir), watchInterval
	if w.start.Chill {
		interval = chillInterval
	}
	for {
		bytes, _, err := measure.OnDisk(dir)
		if err != nil {
			return err
		}
		w.peakDisk = max(w.peakDisk, bytes)
		if w.start.Chill {
			if err := measure.ChillCaches(dir); err != nil {
				return err
			}
		}
		select {
		case <-stop:
			return nil
		case <-time.After(interval):
		}
	}
}

// coldChunk is the number of lookups after which the files are taken out of the page cache
// again: few beside the pages of a large store, so that hardly any two of them meet.
const coldChunk = 512

// cold does a number of lookups, each timed, of which none finds what an earlier chunk has
// brought into the page cache. What the store keeps in its own memory stays there.
func (w *worker) cold(ctx context.Context, j *job) (s *Sample, err error) {
	l, err := w.newLoop(&job{Kind: strings.TrimPrefix(j.Kind, "cold-"), Pass: j.Pass}, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	times, device, dir := measure.NewHistogram(), measure.DeviceReads{}, string(w.start.Dir)
	loop := l.(*lookups)
	start, err := loop.reader.Counters()
	if err != nil {
		return nil, err
	}
	for left := j.Lookups; left > 0; {
		n, err := loop.draw()
		if err != nil {
			return nil, err
		}
		n = min(n, left)
		left -= n
		for from := 0; from < n; from += coldChunk {
			if err := w.drop(); err != nil {
				return nil, err
			}
			before := measure.DeviceReadsOf(dir)
			if err := loop.timed(from, min(from+coldChunk, n), times); err != nil {
				return nil, err
			}
			device = engine.Plus(device, engine.Minus(measure.DeviceReadsOf(dir), before))
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	end, err := loop.reader.Counters()
	s, t := latencies(times), engine.Minus(end, start).Total
	s.Lookups, s.Device = &t, &device
	return s, err
}
