package compare

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// A worker is the child process that has one store of one engine.
type worker struct {
	wrap     func(string, engine.Live) engine.Live
	start    *startTask
	keyspace *keyspace
	popular  *keys.Zipf
	store    engine.Live // nil while it is not open
	settings engine.Settings
	base     Sample         // the process before the store was opened
	checksum uint64         // sum of the first words of all loaded values
	frontier *ycsb.Frontier // the records that were written so far
	hole     hole           // the loaded keys that were deleted
	totals   []uint64       // of counters, by record
	peakDisk int64          // of the store's files, where they are watched
	versions []uint32       // how often each record was replaced; nil: never
	replaced uint64         // how many draws of records to replace were made
}

// Serve answers tasks read from in, one line of JSON each, on out, until in ends:
// when the parent closes it, or is no longer there. It then ends the process, even
// if a task is under way, so that no worker outlives its parent. wrap, if set, stands
// between the worker and the store it opens.
func Serve(ctx context.Context, in io.Reader, out io.Writer,
	wrap func(engine string, s engine.Live) engine.Live) error {
	w := &worker{wrap: wrap}
	tasks := make(chan task)
	go func() {
		lines := json.NewDecoder(bufio.NewReader(in))
		for {
			var t task
			if err := lines.Decode(&t); err != nil {
				os.Exit(bench.StatusOK)
			}
			tasks <- t
		}
	}()
	reply := json.NewEncoder(out)
	for t := range tasks {
		sample, err := w.do(ctx, t)
		a := answer{Sample: sample}
		if err != nil {
			a.Error, a.Wrong = err.Error(), errors.Is(err, bench.ErrWrongAnswer)
		}
		if err := reply.Encode(a); err != nil {
			return fmt.Errorf("answer the parent: %w", err)
		}
	}
	return nil
}

// do carries out one task.
func (w *worker) do(ctx context.Context, t task) (*Sample, error) {
	if w.keyspace == nil && t.Do != "start" {
		return nil, fmt.Errorf("task %q before the start", t.Do)
	}
	switch t.Do {
	case "start":
		return w.begin(t.Start)
	case "open":
		return w.open(t.Open)
	case "close":
		return nil, w.close()
	case "load":
		return w.watched(func() (*Sample, error) { return w.load(ctx) })
	case "calm":
		return w.watched(func() (*Sample, error) { return w.calm(ctx) })
	case "mark":
		w.peakDisk = 0
		return &Sample{}, nil
	case "settle":
		return w.watched(func() (*Sample, error) {
			return w.timed(func() error { return w.store.Settle(ctx) })
		})
	case "drop":
		return &Sample{}, w.drop()
	case "tree":
		return w.tree()
	case "resettle":
		return w.resettle(ctx)
	case "warm":
		return w.warm(ctx)
	case "rest":
		return &Sample{}, w.rest(ctx)
	case "pinned":
		return w.pinned()
	case "sizes":
		return w.sizes()
	case "job":
		return w.job(ctx, t.Job)
	}
	return nil, fmt.Errorf("no task named %q", t.Do)
}

func (w *worker) begin(s *startTask) (*Sample, error) {
	u, err := newKeyspace(s)
	if err != nil {
		return nil, err
	}
	w.start, w.keyspace, w.popular = s, u, keys.NewZipf(u.n, keys.Theta)
	w.frontier = ycsb.NewFrontier(u.n, u.n+u.spare())
	return &Sample{}, nil
}

// open opens the store and says how long that took.
func (w *worker) open(o *openTask) (*Sample, error) {
	if err := w.close(); err != nil {
		return nil, err
	}
	w.settings = o.Settings
	if w.base.Resident == 0 {
		w.base = collected()
	}
	return w.timed(func() error {
		store, err := engine.Open(w.start.Engine, string(w.start.Dir), o.Settings)
		if err != nil {
			return err
		}
		if w.wrap != nil {
			store = w.wrap(w.start.Engine, store)
		}
		w.store = store
		return nil
	})
}

func (w *worker) close() error {
	if w.store == nil {
		return nil
	}
	store := w.store
	w.store = nil
	return store.Close()
}

// timed measures one call.
func (w *worker) timed(f func() error) (*Sample, error) {
	cpu, start := cpuTime(), time.Now()
	if err := f(); err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	return &Sample{Operations: 1, Seconds: took, PerSecond: 1 / took, CPUSeconds: (cpuTime() - cpu).Seconds()}, nil
}

// sizes measures the process and the files of the store.
func (w *worker) sizes() (*Sample, error) {
	s := &Sample{Base: w.base.Resident, Written: measure.Written(), PeakDisk: w.peakDisk}
	s.Resident, s.Anon, s.Peak = resident()
	var err error
	s.OnDisk, s.Files, err = measure.OnDisk(string(w.start.Dir))
	return s, err
}

// resettle settles a store that has come back with more than one level: Badger
// flushes its memtable when it is closed.
func (w *worker) resettle(ctx context.Context) (*Sample, error) {
	shape, err := w.store.Shape()
	if err != nil || shape.Settled() {
		return &Sample{}, err
	}
	return w.timed(func() error { return w.store.Settle(ctx) })
}

// collected measures the process without garbage.
func collected() Sample {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := Sample{Heap: int64(m.HeapAlloc)}
	s.Resident, s.Anon, s.Peak = resident()
	return s
}

// pinned measures what an open store keeps in memory.
func (w *worker) pinned() (*Sample, error) {
	s := collected()
	s.Base, s.BaseHeap, s.BaseAnon = w.base.Resident, w.base.Heap, w.base.Anon
	if m, ok := w.store.(engine.Remembering); ok {
		s.Memory = m.Memory()
	}
	var err error
	s.OnDisk, s.Files, err = measure.OnDisk(string(w.start.Dir))
	return &s, err
}
