package ycsb

import (
	"context"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

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
