package ycsb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Config says what to run. Every field is needed but Rate, Dir, Argv and Wrap.
type Config struct {
	Settings
	Engines   []string // of Engines()
	Workloads []string // of Names, in this order on the same store
	Dir       string   // where a temporary directory is made; empty: the system's
	Argv      []string
	Progress  *progress.Reporter

	// Wrap, if set, stands between the run and each store it opens.
	Wrap func(name string, s engine.Live) engine.Live
}

// Settings are those of a run.
type Settings struct {
	Keys       int             `json:"keys"` // records loaded
	KeySize    int             `json:"key_bytes"`
	ValueSize  int             `json:"value_bytes"`
	Operations int             `json:"operations"` // of each workload
	Workers    int             `json:"workers"`
	Rate       float64         `json:"rate"` // operations a second of all workers; 0: a closed loop
	Seed       uint64          `json:"seed"`
	Store      engine.Settings `json:"store"`
}

// Engines lists the engines of a run: all but the iterator, which does not see what is
// written later.
func Engines() []string {
	return slices.DeleteFunc(engine.Peers(), func(name string) bool { return name == engine.PebbleIteratorName })
}

// maxRate bounds operations per second.
const maxRate = 1e8

// validate reports the first field that makes no sense.
func (c *Config) validate() error {
	for _, name := range c.Engines {
		if err := engine.CheckName("--engine", name, Engines()); err != nil {
			return err
		}
	}
	if c.Rate < 0 || c.Rate > maxRate {
		return bench.Usagef("--rate %g: want operations per second, up to %g, or 0 for a closed loop", c.Rate, maxRate)
	}
	return cmp.Or(bench.CheckNames("--engine", c.Engines, Engines()),
		bench.CheckNames("--workload", c.Workloads, Names),
		bench.CheckBounds(
			bench.Bound{Flag: "--keys", Value: int64(c.Keys), Low: 100, High: keys.MaxGenerated / 2},
			bench.Bound{Flag: "--ops", Value: int64(c.Operations), Low: 1, High: 1 << 30},
			bench.Bound{Flag: "--threads", Value: int64(c.Workers), Low: 1, High: 4096}),
		c.Store.Check("--"))
}

// Run loads a store per engine and runs every workload on it. A wrong answer ends the
// run with an error that matches bench.ErrWrongAnswer.
func Run(ctx context.Context, c *Config) (*tidy.Result, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	values, err := keys.NewValues(c.ValueSize, c.Seed)
	if err != nil {
		return nil, err
	}
	updated, err := keys.NewValues(c.ValueSize, c.Seed+1)
	if err != nil {
		return nil, err
	}
	// Records to insert have keys from the beginning, after those that are loaded.
	source, err := keys.NewGenerated(c.Keys+c.inserts(), c.KeySize, c.Seed)
	if err != nil {
		return nil, err
	}
	return tidy.Measure("ycsb", c.about(), c.Settings, c.Argv, c.Dir, func(r *tidy.Result, dir string) error {
		r.Notes = []string{
			fmt.Sprintf("settings: cache %s, memtable %s, blocks of %s, compression %s, no sync",
				bench.Bytes(c.Store.CacheBytes), bench.Bytes(c.Store.MemtableBytes), bench.Bytes(c.Store.BlockBytes),
				c.Store.Compression),
			fmt.Sprintf("Each latency has two readings of the clock in it, %d ns apart at least. Every answer was "+
				"checked, off the clock.", measure.TimerCost().Nanoseconds()),
		}
		for _, name := range c.Engines {
			x := &run{c: c, source: source, values: values, updated: updated, engine: name}
			if err := x.all(ctx, filepath.Join(dir, name), r); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// about says what is measured.
func (c *Config) about() string {
	loop := "closed loop"
	if c.Rate > 0 {
		loop = bench.Count(int64(c.Rate)) + " operations per second, latency from when each was due"
	}
	return fmt.Sprintf("YCSB: %s records of %d + %d bytes, %s per workload, %s, %s, seed %d", bench.Count(c.Keys),
		c.KeySize, c.ValueSize, bench.Times(c.Operations, "operation"), bench.Times(c.Workers, "worker"), loop, c.Seed)
}

// inserts returns how many records the workloads may insert: a bit more than their
// share, which is drawn.
func (c *Config) inserts() int {
	n := 0
	for _, name := range c.Workloads {
		if m := Mixes[name]; m.Other == Insert {
			n += int((1-m.Share)*float64(c.Operations)*1.5) + 1000
		}
	}
	return n
}

// A run is one engine under way.
type run struct {
	c        *Config
	source   *keys.Generated
	values   keys.Values
	updated  keys.Values // what updates write
	engine   string
	store    engine.Live
	frontier *Frontier
	zipf     *keys.Zipf
	line     atomic.Pointer[measure.Recorder] // of the workload that runs
}

// background notes what the store does beside a workload.
func (x *run) background(b engine.Background) {
	if line := x.line.Load(); line != nil {
		line.Background(b)
	}
}

// all loads the store and runs the workloads on it.
func (x *run) all(ctx context.Context, dir string, r *tidy.Result) (err error) {
	s := x.c.Store
	s.Durability, s.Writers, s.Background = engine.Soon, x.c.Workers, x.background
	if x.store, err = engine.Open(x.engine, dir, s); err != nil {
		return err
	}
	if x.c.Wrap != nil {
		x.store = x.c.Wrap(x.engine, x.store)
	}
	defer func() { err = errors.Join(err, x.store.Close()) }()
	if err := x.load(ctx); err != nil {
		return err
	}
	x.frontier = NewFrontier(x.c.Keys, x.c.Keys+x.c.inserts())
	x.zipf = keys.NewZipf(x.c.Keys, keys.Theta)
	for _, name := range x.c.Workloads {
		rate, err := x.workload(ctx, name, r)
		if err != nil {
			return fmt.Errorf("workload %s: %w", name, err)
		}
		if x.c.Rate > 0 && rate < 0.95*x.c.Rate {
			r.Environment.Warnings = append(r.Environment.Warnings,
				fmt.Sprintf("%s, workload %s: %.0f operations per second of the %.0f asked for: the latencies grow "+
					"with the length of the run", x.engine, name, rate, x.c.Rate))
		}
	}
	return nil
}

// load writes the records and settles the store.
func (x *run) load(ctx context.Context) error {
	phase := x.c.Progress.Start("load "+x.engine, x.c.Keys, "keys")
	l := &measure.Loader{Source: x.source, Values: x.values, Store: x.store, Keys: x.c.Keys}
	if err := l.Fill(ctx, phase.Add); err != nil {
		return err
	}
	phase.Done()
	phase = x.c.Progress.Start("settle "+x.engine, 0, "")
	defer phase.Done()
	return x.store.Settle(ctx)
}

// workload runs one workload with all workers, and returns operations per second.
func (x *run) workload(ctx context.Context, name string, r *tidy.Result) (rate float64, err error) {
	phase := x.c.Progress.Start(x.engine+" "+name, x.c.Operations, "operations")
	workers := make([]*worker, x.c.Workers)
	for i := range workers {
		w, err := x.newWorker(name, i)
		if err != nil {
			return 0, err
		}
		workers[i] = w
	}
	line := measure.StartTimeline()
	x.line.Store(line)
	start := time.Now()
	failed := measure.Together(ctx, len(workers), func(ctx context.Context, i int) error {
		return errors.Join(workers[i].loop(ctx, start, line), workers[i].Close())
	})
	took := time.Since(start)
	if failed != nil {
		return 0, failed
	}
	phase.Add(x.c.Operations)
	phase.Done()
	of := Cell(x.engine, name)
	r.Timelines = append(r.Timelines, tidy.Timeline{Cell: of, Timeline: line.Timeline(start.Add(took))})
	return summary(r, of, took, workers), nil
}

// Orders of a run are drawn from its seed XOR one of these.
const (
	popularOrder = 0x706f7075
	drawOrder    = 0x79637362
)

// A worker does every n-th operation of a workload.
type worker struct {
	*Actor
	c       *Config
	number  int
	due     [verbs]*hdrhistogram.Histogram
	service [verbs]*hdrhistogram.Histogram
}

func (x *run) newWorker(workload string, number int) (*worker, error) {
	pass := uint64(number) + uint64(slices.Index(Names, workload)+1)<<32
	w := &worker{c: x.c, number: number, Actor: &Actor{
		Mix: Mixes[workload], Store: x.store, Frontier: x.frontier, Zipf: x.zipf,
		Records: &records{source: x.source, loaded: x.values, updated: x.updated},
		Popular: keys.NewPermutation(x.c.Keys, keys.Mix(x.c.Seed^popularOrder)),
		Random:  keys.NewRandom(x.c.Seed^drawOrder, pass),
	}}
	for _, v := range []Verb{w.Mix.First, w.Mix.Other} {
		w.due[v], w.service[v] = measure.NewHistogram(), measure.NewHistogram()
	}
	return w, w.Open()
}

// records are those of a run, for one goroutine. A value is right in every byte.
type records struct {
	source          *keys.Generated
	loaded, updated keys.Values
	scratch         []byte
}

func (r *records) AppendKey(dst []byte, record int) []byte {
	return r.source.AppendPresent(dst, record)
}
func (r *records) AppendAbsentKey(dst []byte, n int) []byte { return r.source.AppendAbsent(dst, n) }
func (r *records) Absent() int                              { return r.source.Absent() }

func (r *records) AppendValue(dst, key []byte, updated bool) []byte {
	if updated {
		return r.updated.Append(dst, key)
	}
	return r.loaded.Append(dst, key)
}

func (r *records) Right(key, value []byte) (ok bool) {
	if ok, r.scratch = r.loaded.Check(r.scratch, key, value); !ok {
		ok, r.scratch = r.updated.Check(r.scratch, key, value)
	}
	return ok
}

// loop does the worker's operations. At a rate each is due at its own time, whatever
// became of those before: a store that stops for a while makes many operations late,
// and all of them count.
func (w *worker) loop(ctx context.Context, start time.Time, line *measure.Recorder) error {
	c := w.c
	t := teller{line: line, told: start}
	var o Operation
	for i := w.number; i < c.Operations; i += c.Workers {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.Draw(&o); err != nil {
			return err
		}
		begin := time.Now()
		due := begin
		if c.Rate > 0 {
			due = start.Add(time.Duration(float64(i) / c.Rate * float64(time.Second)))
			if err := measure.WaitUntil(ctx, due); err != nil {
				return err
			}
			begin = time.Now()
		}
		err := w.Do(&o)
		end := time.Now()
		if err == nil {
			err = w.Check(&o)
		}
		if err != nil {
			return err
		}
		const longest = int64(time.Minute)
		_ = w.due[o.Verb].RecordValue(min(longest, int64(end.Sub(due)))) // in bounds
		_ = w.service[o.Verb].RecordValue(min(longest, int64(end.Sub(begin))))
		t.done(end, i+c.Workers >= c.Operations)
	}
	return nil
}

// A teller tells a timeline of operations, some at a time, so that workers seldom wait
// for each other.
type teller struct {
	line *measure.Recorder
	n    int
	told time.Time
}

// done counts an operation that has ended.
func (t *teller) done(at time.Time, last bool) {
	const some = 16
	if t.n++; t.n == some || last || at.Sub(t.told) > time.Millisecond {
		t.line.Add(t.n, at)
		t.n, t.told = 0, at
	}
}

// Cell names a workload on an engine. With the setting operation it names one of its verbs.
func Cell(engine, workload string) tidy.Cell { return tidy.Of("engine", engine, "workload", workload) }

// summary adds up what all workers measured of a cell, and returns operations per second.
func summary(r *tidy.Result, of tidy.Cell, took time.Duration, workers []*worker) float64 {
	total := int64(0)
	for v := range verbs {
		due, service := measure.NewHistogram(), measure.NewHistogram()
		for _, w := range workers {
			if w.due[v] != nil {
				due.Merge(w.due[v])
				service.Merge(w.service[v])
			}
		}
		if due.TotalCount() == 0 {
			continue
		}
		total += due.TotalCount()
		verb := of.With("operation", v)
		r.Add(verb, "count", "", float64(due.TotalCount()))
		addLatency(r, verb, "", due)
		addLatency(r, verb, "service ", service)
	}
	rate := float64(total) / took.Seconds()
	r.Add(of, "rate", "1/s", rate)
	return rate
}

// addLatency adds what there is to say of a distribution: of times from the moment an operation was due, which in a
// closed loop is when it began, or (service) from when it began.
func addLatency(r *tidy.Result, of tidy.Cell, kind string, h *hdrhistogram.Histogram) {
	l := measure.LatencyOf(h)
	r.Add(of, kind+"mean", "ns", h.Mean())
	for _, p := range []struct {
		name  string
		nanos int64
	}{{"p50", l.P50}, {"p90", l.P90}, {"p99", l.P99}, {"p99.9", l.P999}, {"p99.99", l.P9999}, {"max", l.Max}} {
		r.Add(of, kind+p.name, "ns", float64(p.nanos))
	}
}
