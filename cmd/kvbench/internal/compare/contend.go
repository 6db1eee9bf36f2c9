package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// ContendWorks lists the workloads of Contend, in the order in which they are measured.
var ContendWorks = []string{"absent", "existing", "set"}

func (c *Config) validateContend() error {
	if len(c.Goroutines) == 0 {
		return bench.Usagef("--goroutines: nothing to measure")
	}
	if slices.Contains(c.Engines, engine.PebbleIteratorName) {
		return bench.Usagef("--engine %s: it does not see what is written", engine.PebbleIteratorName)
	}
	return cmp.Or(checkEngines(c.Engines), checkStores([]int{c.Keys}, c.KeySize, c.ValueSize, c.Store),
		bench.Within("--procs", 1, 1024, c.Procs...), bench.Within("--goroutines", 1, chunkKeys, c.Goroutines...),
		c.checkTurns(), bench.CheckTwice("--procs", c.Procs), bench.CheckTwice("--goroutines", c.Goroutines))
}

// Contend compares engines at a few workloads with every number of goroutines under every number of processors, with
// everything cached.
func Contend(ctx context.Context, c *Config) (*tidy.Result, error) {
	cached := *c
	cached.Store.CacheBytes, cached.Compressions, cached.Loads = max(64<<20, 2*c.dataBytes()),
		[]string{c.Store.Compression}, 1
	if err := cached.validateContend(); err != nil {
		return nil, err
	}
	var crowds []Phase
	for _, work := range ContendWorks {
		for _, procs := range c.Procs {
			for _, n := range c.Goroutines {
				crowds = append(crowds, Phase{Name: work, Stage: crowded,
					Title: fmt.Sprintf("%s, %d processors, %d goroutines", work, procs, n),
					job:   job{Kind: work, Procs: procs, Threads: n}})
			}
		}
	}
	about := fmt.Sprintf("Processors and goroutines: %s keys of %d bytes, values of %d bytes, everything cached, "+
		"medians of %s of %g s, seed %d", bench.Count(c.Keys), c.KeySize, c.ValueSize,
		bench.Times(c.Repetitions, "repetition"), c.Seconds, c.Seed)
	return c.measured("contend", about, c.Settings, func(r *tidy.Result, dir string) error {
		return (&run{config: &cached, dir: dir, result: r, phases: crowds}).all(ctx)
	})
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

const (
	// crowdChunks is how many chunks of keys are drawn beforehand, for all goroutines.
	crowdChunks = 16
	// crowdTurn is how many operations a goroutine does before it looks at the clock.
	crowdTurn = 16
)

// crowd does one kind of operation in many goroutines under a number of processors, until the time is over. Each
// goroutine starts at another key and cycles through the same keys.
func (w *worker) crowd(ctx context.Context, j *job) (s *Sample, err error) {
	u, keys := w.keyspace, newChunk(w.keyspace)
	draw := u.existing(existingOrder, j.Pass)
	if j.Kind == string(engine.Absent) {
		draw = u.absentKeys(j.Pass)
	}
	for range crowdChunks {
		draw(keys)
	}
	does := make([]func(from, to int) error, j.Threads)
	for g := range does {
		if j.Kind == "set" {
			does[g] = w.setter(keys)
			continue
		}
		l := &lookups{right: u.hasWord, kind: engine.Kind(j.Kind), chunk: keys}
		if l.reader, err = w.store.NewReader(engine.Get, l.kind); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, l.close()) }()
		does[g] = l.some
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(j.Procs))
	runtime.GC()
	until, stop := context.WithTimeout(ctx, time.Duration(j.Seconds*float64(time.Second)))
	defer stop()
	errs := make([]error, j.Threads)
	var total atomic.Int64
	var group sync.WaitGroup
	wait, cpu, start := mutexWait(), processorTime(), time.Now()
	for g, turn := range does {
		group.Go(func() {
			at := g * (keys.len() / j.Threads) / crowdTurn * crowdTurn
			for begun := false; errs[g] == nil && (!begun || until.Err() == nil); begun = true {
				errs[g] = turn(at, at+crowdTurn)
				at = (at + crowdTurn) % keys.len()
				total.Add(crowdTurn)
			}
			if errs[g] != nil {
				stop()
			}
		})
	}
	group.Wait()
	took := time.Since(start).Seconds()
	s = &Sample{Operations: total.Load(), Seconds: took, PerSecond: float64(total.Load()) / took,
		CPUSeconds: (processorTime() - cpu).Seconds(), MutexWait: mutexWait() - wait}
	return s, errors.Join(append(errs, ctx.Err())...)
}

// setter returns what updates the keys of a chunk from one on up to another.
func (w *worker) setter(c *chunk) func(from, to int) error {
	var value []byte
	return func(from, to int) error {
		for i := from; i < to; i++ {
			value = w.keyspace.updated.Append(value[:0], c.key(i))
			if err := w.store.Set(c.key(i), value); err != nil {
				return err
			}
		}
		return nil
	}
}
