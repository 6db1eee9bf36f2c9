package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// ContendWorks lists the kinds of operations, in the order in which they are measured.
var ContendWorks = []string{"absent", "existing", "set"}

func (c *Config) validateContend() error {
	var bounds []bench.Bound
	for _, n := range c.Procs {
		bounds = append(bounds, bench.Bound{Flag: "--procs", Value: int64(n), Low: 1, High: 1024})
	}
	for _, n := range c.Goroutines {
		bounds = append(bounds, bench.Bound{Flag: "--goroutines", Value: int64(n), Low: 1, High: chunkKeys})
	}
	if len(c.Goroutines) == 0 {
		return bench.Usagef("--goroutines: nothing to measure")
	}
	if slices.Contains(c.Engines, engine.PebbleIteratorName) {
		return bench.Usagef("--engine %s: it does not see what is written", engine.PebbleIteratorName)
	}
	return cmp.Or(checkEngines(c.Engines), checkStores([]int{c.Keys}, c.KeySize, c.ValueSize, c.contended()),
		bench.CheckBounds(bounds...), c.checkTurns(), bench.CheckTwice("--procs", c.Procs),
		bench.CheckTwice("--goroutines", c.Goroutines))
}

// Contend measures every kind of work with every number of goroutines under every number
// of processors: in each repetition all engines in turn, each in a process of its own.
func Contend(ctx context.Context, c *Config) (*tidy.Result, error) {
	if err := c.validateContend(); err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Processors and goroutines: %s keys of %d bytes, values of %d bytes, everything cached, "+
		"medians of %s of %g s, seed %d", bench.Count(c.Keys), c.KeySize, c.ValueSize,
		bench.Times(c.Repetitions, "repetition"), c.Seconds, c.Seed)
	return c.measured("contend", about, c.Settings, func(r *tidy.Result, dir string) error {
		return c.contend(ctx, r, dir)
	})
}

// contend fills the stores, and adds the rows of all kinds of work. Its processes are gone when it
// returns.
func (c *Config) contend(ctx context.Context, r *tidy.Result, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	var stores []*child
	defer func() {
		cancel()
		for _, s := range stores {
			s.kill()
		}
	}()
	for _, name := range c.Engines {
		s, err := startChild(ctx, name, c.Worker)
		if err != nil {
			return err
		}
		stores = append(stores, s)
		if err := c.fillContended(ctx, s, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, work := range ContendWorks {
		phase := c.Progress.Start(work, 0, "")
		if err := c.work(ctx, work, stores, r); err != nil {
			return fmt.Errorf("%s: %w", work, err)
		}
		phase.Done()
	}
	return nil
}

// contended returns the settings of the stores, with everything in the cache.
func (c *Config) contended() engine.Settings {
	s := c.Store
	s.BatchKeys, s.Durability = batchKeys, engine.WithOS
	s.CacheBytes = max(64<<20, 2*c.dataBytes())
	return s
}

// fillContended loads and settles a store, and opens it with everything in its cache.
func (c *Config) fillContended(ctx context.Context, s *child, dir string) error {
	phase := c.Progress.Start("load "+s.name, c.Keys, "keys")
	settings := c.contended()
	_, err := s.steps(ctx, c.start(s.name, dir, c.Keys), opening(settings), task{Do: "load"}, task{Do: "settle"},
		opening(settings), task{Do: "warm"})
	if err == nil {
		phase.Done()
	}
	return err
}

// work adds the rows of one kind of work.
func (c *Config) work(ctx context.Context, work string, stores []*child, r *tidy.Result) error {
	for rep := range c.Repetitions {
		for i := range len(c.Procs) * len(c.Goroutines) {
			procs, goroutines := c.Procs[i/len(c.Goroutines)], c.Goroutines[i%len(c.Goroutines)]
			for k := range stores {
				store := stores[(k+rep+i)%len(stores)]
				j := job{Kind: "contend-" + work, Seconds: c.Seconds, Threads: goroutines, Procs: procs,
					Pass: uint64(rep)}
				got, err := store.steps(ctx, task{Do: "job", Job: &j}, task{Do: "rest"})
				if err != nil {
					return err
				}
				of := tidy.Of("work", work, "engine", store.name, "gomaxprocs", procs, "goroutines", goroutines)
				s, n := got[0], float64(max(1, got[0].Operations))
				r.Append(of, "rate", "per second", s.PerSecond) // of all goroutines
				r.Append(of, "processor-time", "ns", 1e9*s.CPUSeconds/n)
				r.Append(of, "lock-wait", "ns", 1e9*s.MutexWait/n) // of all goroutines together
			}
		}
	}
	return nil
}

// mutexWait returns how long goroutines of this process have waited for mutexes so far, and
// for locks of the runtime. What they wait for channels and condition variables is not in it.
func mutexWait() float64 {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return sample[0].Value.Float64()
}

// contendChunks is how many chunks of keys are drawn beforehand, for all goroutines.
const contendChunks = 16

// A contention is many goroutines at the same store.
type contention struct {
	w     *worker
	work  string // "existing", "absent" or "set"
	keys  *chunk
	stop  atomic.Bool
	total atomic.Int64 // operations
}

// contend does one kind of operation in many goroutines under a number of processors, until
// the time is over.
func (w *worker) contend(ctx context.Context, j *job, work string) (*Sample, error) {
	c := &contention{w: w, work: work, keys: newChunk(w.keyspace)}
	next := w.keyspace.existing(existingOrder, j.Pass)
	if work == "absent" {
		next = w.keyspace.absentKeys(j.Pass)
	}
	for range contendChunks {
		next(c.keys)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(j.Procs))
	runtime.GC()
	timer := time.AfterFunc(time.Duration(j.Seconds*float64(time.Second)), func() { c.stop.Store(true) })
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { c.stop.Store(true) })()
	errs := make([]error, j.Threads)
	var group sync.WaitGroup
	wait, cpu, start := mutexWait(), cpuTime(), time.Now()
	for g := range j.Threads {
		group.Go(func() {
			if errs[g] = c.one(g * (c.keys.len() / j.Threads)); errs[g] != nil {
				c.stop.Store(true)
			}
		})
	}
	group.Wait()
	took := time.Since(start).Seconds()
	s := &Sample{Operations: c.total.Load(), Seconds: took, PerSecond: float64(c.total.Load()) / took,
		CPUSeconds: (cpuTime() - cpu).Seconds(), MutexWait: mutexWait() - wait}
	return s, errors.Join(append(errs, ctx.Err())...)
}

// contendOperations is how many operations a goroutine does, at least, before it looks
// whether it is to stop.
const contendOperations = 16

// one is one goroutine, which begins with key at.
func (c *contention) one(at int) error {
	do, finish, err := c.operation()
	if err != nil {
		return err
	}
	for begun := false; !begun || !c.stop.Load(); begun = true {
		for range contendOperations {
			if err := do(at); err != nil {
				return errors.Join(err, finish())
			}
			if at++; at == c.keys.len() {
				at = 0
			}
		}
		c.total.Add(contendOperations)
	}
	return finish()
}

// operation returns what does one operation with a key, and what comes at the end.
func (c *contention) operation() (do func(at int) error, finish func() error, err error) {
	u := c.w.keyspace
	var buffer []byte
	if c.work == "set" {
		return func(at int) error {
			key := c.keys.key(at)
			buffer = u.updated.Append(buffer[:0], key)
			return c.w.store.Set(key, buffer)
		}, func() error { return nil }, nil
	}
	kind := engine.Kind(c.work)
	r, err := c.w.store.NewReader(engine.Get, kind)
	if err != nil {
		return nil, nil, err
	}
	return func(at int) error {
		key := c.keys.key(at)
		value, found, err := r.Get(buffer[:0], key)
		if err != nil {
			return fmt.Errorf("look up %x: %w", key, err)
		}
		if found != (kind == engine.Existing) || found && !u.Right(key, value) {
			return wrongLookup(kind, key, value, found)
		}
		buffer = value
		return nil
	}, r.Close, nil
}
