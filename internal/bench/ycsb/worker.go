package ycsb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// Orders of a run are drawn from its seed XOR one of these.
const (
	popularOrder = 0x706f7075
	drawOrder    = 0x79637362
)

// A worker does every n-th operation of a workload.
type worker struct {
	x       *run
	mix     Mix
	number  int
	readers map[engine.Kind]engine.Reader
	random  *keys.Random
	popular keys.Permutation // which loaded record has a rank
	due     [verbs]*hdrhistogram.Histogram
	service [verbs]*hdrhistogram.Histogram

	key, value, got, scratch []byte
	seen                     int
	last                     []byte
	wrong                    []byte
}

func (x *run) newWorker(workload string, number int) (*worker, error) {
	pass := uint64(number)
	for i, name := range Names {
		if name == workload {
			pass += uint64(i+1) << 32
		}
	}
	w := &worker{
		x: x, mix: Mixes[workload], number: number, readers: map[engine.Kind]engine.Reader{},
		random:  keys.NewRandom(x.c.Seed^drawOrder, pass),
		popular: keys.NewPermutation(x.c.Keys, keys.Mix(x.c.Seed^popularOrder)),
	}
	for _, kind := range engine.Kinds {
		r, err := x.store.NewReader(engine.Get, kind)
		if err != nil {
			return nil, err
		}
		w.readers[kind] = r
	}
	for _, v := range []Verb{w.mix.First, w.mix.Other} {
		w.due[v], w.service[v] = measure.NewHistogram(), measure.NewHistogram()
	}
	return w, nil
}

// close closes the readers.
func (w *worker) close() error {
	for _, r := range w.readers {
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// loop does the worker's operations. At a rate each is due at its own time, whatever
// became of those before: a store that stops for a while makes many operations late,
// and all of them count.
func (w *worker) loop(ctx context.Context, start time.Time, line *measure.Recorder) error {
	c := w.x.c
	t := teller{line: line, told: start}
	for i := w.number; i < c.Operations; i += c.Workers {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verb, record, err := w.draw()
		if err != nil {
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
		check, err := w.do(verb, record)
		end := time.Now()
		if err != nil {
			return err
		}
		if err := check(); err != nil {
			return err
		}
		const longest = int64(time.Minute)
		_ = w.due[verb].RecordValue(min(longest, int64(end.Sub(due)))) // in bounds
		_ = w.service[verb].RecordValue(min(longest, int64(end.Sub(begin))))
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

// draw chooses an operation and prepares its key and value.
func (w *worker) draw() (Verb, int, error) {
	verb := w.mix.Other
	if w.random.Float() < w.mix.Share {
		verb = w.mix.First
	}
	rank := w.x.zipf.Draw(w.random.Float())
	record := 0
	switch {
	case verb == Absent:
		w.key = w.x.source.AppendAbsent(w.key[:0], w.random.Below(w.x.source.Absent()))
		return verb, 0, nil
	case verb == Insert:
		n, ok := w.x.frontier.take()
		if !ok {
			return verb, 0, errors.New("all records that were left to insert are used up")
		}
		record = n
	case w.mix.Latest:
		record = w.x.frontier.records() - 1 - rank
	default:
		record = w.popular.At(rank)
	}
	w.key = w.x.source.AppendPresent(w.key[:0], record)
	w.value = w.x.values.Append(w.value[:0], w.key)
	return verb, record, nil
}

// do does one operation and returns its check, which is not timed.
func (w *worker) do(verb Verb, record int) (check func() error, err error) {
	switch verb {
	case Update:
		return right, w.x.store.Set(w.key, w.value)
	case Insert:
		if err := w.x.store.Set(w.key, w.value); err != nil {
			return nil, err
		}
		w.x.frontier.inserted(record)
		return right, nil
	case Scan:
		w.seen, w.last, w.wrong = 0, w.last[:0], nil
		limit := 1 + w.random.Below(MaxScan)
		err := w.x.store.Scan(w.key, limit, w.visit)
		return func() error { return w.scanned(limit) }, err
	}
	kind := engine.Existing
	if verb == Absent {
		kind = engine.Absent
	}
	found := false
	if w.got, found, err = w.readers[kind].Get(w.got[:0], w.key); err != nil {
		return nil, err
	}
	if verb == Modify {
		err = w.x.store.Set(w.key, w.value)
	}
	return func() error { return w.looked(kind, found) }, err
}

// right is the check of what has no answer.
func right() error { return nil }

// looked checks the answer to a lookup.
func (w *worker) looked(kind engine.Kind, found bool) error {
	what := ""
	switch {
	case found != (kind == engine.Existing):
		what = fmt.Sprintf("found %t", found)
	case found && !bytes.Equal(w.got, w.value):
		what = "another value"
	}
	if what == "" {
		return nil
	}
	return &measure.WrongAnswer{Kind: kind, Key: bytes.Clone(w.key), What: what}
}

// visit checks one entry of a scan: keys go up from the first, which exists, and each
// value belongs to its key.
func (w *worker) visit(key, value []byte) {
	ok, scratch := w.x.values.Check(w.scratch, key, value)
	w.scratch = scratch
	if w.wrong == nil && (!ok || w.seen == 0 && !bytes.Equal(key, w.key) || w.seen > 0 &&
		bytes.Compare(key, w.last) <= 0) {
		w.wrong = bytes.Clone(key)
	}
	w.last = append(w.last[:0], key...)
	w.seen++
}

// scanned checks what a scan came to.
func (w *worker) scanned(limit int) error {
	if w.wrong == nil && w.seen > 0 && w.seen <= limit {
		return nil
	}
	return &measure.WrongAnswer{Kind: engine.Existing, Key: bytes.Clone(w.key),
		What: fmt.Sprintf("a scan of up to %d from here: %d came, the first wrong one is %x", limit, w.seen, w.wrong)}
}

// summary adds up what all workers measured.
func summary(engine, name string, took time.Duration, workers []*worker) *Row {
	row := &Row{Engine: engine, Workload: name, Seconds: took.Seconds()}
	total := int64(0)
	for v := range verbs {
		due, service := measure.NewHistogram(), measure.NewHistogram()
		for _, w := range workers {
			if w.due[v] != nil {
				due.Merge(w.due[v])
				service.Merge(w.service[v])
			}
		}
		if n := due.TotalCount(); n > 0 {
			total += n
			row.Verbs = append(row.Verbs,
				Latency{Verb: v.String(), Count: n, Due: percentiles(due), Service: percentiles(service)})
		}
	}
	row.PerSecond = float64(total) / took.Seconds()
	return row
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	return Percentiles{
		Mean: h.Mean(), P50: h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90), P99: h.ValueAtPercentile(99),
		P999: h.ValueAtPercentile(99.9), P9999: h.ValueAtPercentile(99.99), Max: h.Max(),
	}
}
