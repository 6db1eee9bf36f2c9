package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// An Op is what a workload does with keys.
type Op string

// Operations.
const (
	Add      Op = "add"      // add keys
	Contains Op = "contains" // ask for keys
)

// A Request asks for a run of an operation over the keys First, First+1 ... of which there are Count.
type Request struct {
	Op      Op
	First   int
	Count   int
	Batch   int // keys of a call
	Workers int // goroutines; Count is that of all
}

// A Result is what a run took. What it counts is of the whole process.
type Result struct {
	Elapsed time.Duration
	CPU     time.Duration
	Mallocs uint64
	Trips   int64 // to Redis: commands or pipelines that were sent
	Yes     int   // keys that Contains said may be there
}

// A Subject is a filter that is measured. Its methods are called from many goroutines.
type Subject interface {
	// Do runs an operation on keys in one call and returns how many are there, for Contains.
	Do(ctx context.Context, op Op, keys [][]byte) (yes int, err error)

	// Trips counts what was sent so far.
	Trips() int64
}

// Keys returns consecutive keys of 16 bytes.
func Keys(first, count int) [][]byte {
	keys := make([][]byte, count)
	room := make([]byte, 0, 16*count)
	for i := range keys {
		at := len(room)
		room = append(room, "user:"...)
		room = strconv.AppendInt(room, int64(first+i)+10_000_000_000, 10)
		keys[i] = room[at:len(room):len(room)]
	}
	return keys
}

// Run does what r asks for.
func Run(ctx context.Context, s Subject, r Request) (Result, error) {
	if r.Batch < 1 || r.Workers < 1 {
		return Result{}, fmt.Errorf("workload: batches of %d keys and %d workers cannot be", r.Batch, r.Workers)
	}
	keys := Keys(r.First, r.Count)
	var next, yes atomic.Int64
	work := func() error {
		for {
			last := int(next.Add(int64(r.Batch)))
			first := last - r.Batch
			if first >= len(keys) {
				return nil
			}
			n, err := s.Do(ctx, r.Op, keys[first:min(last, len(keys))])
			if err != nil {
				return err
			}
			yes.Add(int64(n))
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	trips, used, began := s.Trips(), CPU(), time.Now()
	err := inParallel(r.Workers, work)
	elapsed, used := time.Since(began), CPU()-used
	runtime.ReadMemStats(&after)
	return Result{
		Elapsed: elapsed, CPU: used, Mallocs: after.Mallocs - before.Mallocs, Trips: s.Trips() - trips,
		Yes: int(yes.Load()),
	}, err
}

func inParallel(workers int, work func() error) error {
	errs := make(chan error, workers)
	var group sync.WaitGroup
	for range workers - 1 {
		group.Go(func() { errs <- work() })
	}
	errs <- work()
	group.Wait()
	var first error
	for range workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
