package compare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

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
