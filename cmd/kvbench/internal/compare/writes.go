package compare

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// setChunk is the number of sets between two readings of the clock, fewer if each
// waits for the disk.
const (
	setChunk     = 512
	setChunkDisk = 16
)

// sets is a loop of single writes to random loaded records.
type sets struct {
	w      *worker
	order  keys.Permutation
	at     int
	chunk  int
	keys   []byte
	values []byte
}

func newSets(w *worker, pass uint64) *sets {
	u := w.keyspace
	s := &sets{w: w, order: keys.NewPermutation(u.n, keys.Mix(u.seed^writeOrder)), at: int(pass * passLength),
		chunk: setChunk}
	if w.settings.Durability == engine.Durable {
		s.chunk = setChunkDisk
	}
	return s
}

func (s *sets) pair(i int) (key, value []byte) {
	k, v := s.w.keyspace.keySize, s.w.start.ValueSize
	return s.keys[i*k : (i+1)*k : (i+1)*k], s.values[i*v : (i+1)*v : (i+1)*v]
}

func (s *sets) draw() (int, error) {
	u := s.w.keyspace
	s.keys, s.values = s.keys[:0], s.values[:0]
	for range s.chunk {
		from := len(s.keys)
		s.keys = u.source.AppendPresent(s.keys, s.order.At(s.at%u.n))
		s.values = u.AppendValue(s.values, s.keys[from:], true)
		s.at++
	}
	return s.chunk, nil
}

func (s *sets) do() error {
	for i := range s.chunk {
		key, value := s.pair(i)
		if err := s.w.store.Set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// close reads the last chunk back.
func (s *sets) close() error {
	r, err := s.w.store.NewReader(engine.Get, engine.Existing)
	if err != nil {
		return err
	}
	for i := range len(s.keys) / s.w.keyspace.keySize {
		key, want := s.pair(i)
		value, found, err := r.Get(nil, key)
		if err != nil {
			return err
		}
		if !found || !slices.Equal(value, want) {
			return wrongLookup(engine.Existing, key, value, found)
		}
	}
	return r.Close()
}

// heavyRate is the number of keys per second that are offered in batches while reads
// are timed: the same for every engine, so that one that takes more is not punished
// with more compaction.
const heavyRate = 100_000

// heavy times single lookups while another goroutine writes batches at a fixed rate,
// and the batches too.
func (w *worker) heavy(ctx context.Context, j *job) (*Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(j.Seconds*float64(time.Second)))
	defer cancel()
	reads, batches := measure.NewHistogram(), measure.NewHistogram()
	var readErr, writeErr error
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		writeErr = w.writeAtRate(ctx, j.Pass, batches)
	})
	group.Go(func() {
		defer cancel()
		readErr = w.timeLookups(ctx, j.Pass, reads)
	})
	group.Wait()
	if err := cmp.Or(readErr, writeErr); err != nil {
		return nil, err
	}
	s := latencies(reads)
	s.Batches, s.LongestBatch = batches.TotalCount(), batches.Max()
	return s, nil
}

// latencies is the sample of operations of which each was timed.
func latencies(times *hdrhistogram.Histogram) *Sample {
	n, seconds := times.TotalCount(), times.Mean()*float64(times.TotalCount())/1e9
	return &Sample{Operations: n, Seconds: seconds, PerSecond: float64(n) / seconds, P50: times.ValueAtPercentile(50),
		P99: times.ValueAtPercentile(99), P999: times.ValueAtPercentile(99.9), Max: times.Max()}
}

// writeAtRate writes batches until ctx ends, one at least, each when it is due or as soon after as
// the store lets it.
func (w *worker) writeAtRate(ctx context.Context, pass uint64, h *hdrhistogram.Histogram) error {
	u := w.keyspace
	order := keys.NewPermutation(u.n, keys.Mix(u.seed^heavyOrder))
	at := int(pass * passLength)
	interval := time.Second * batchKeys / heavyRate
	var key, value []byte
	for due := time.Now(); ; due = due.Add(interval) {
		time.Sleep(time.Until(due))
		var took time.Duration
		for range batchKeys {
			key = u.source.AppendPresent(key[:0], order.At(at%u.n))
			value = u.updated.Append(value[:0], key)
			at++
			start := time.Now()
			if err := w.store.Put(key, value); err != nil {
				return err
			}
			took += time.Since(start)
		}
		if err := record(h, took); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// timeLookups looks random loaded keys up until ctx ends, one at least.
func (w *worker) timeLookups(ctx context.Context, pass uint64, h *hdrhistogram.Histogram) (err error) {
	l, err := w.newLoop(&job{Kind: "existing", Pass: pass}, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	loop := l.(*lookups)
	loop.right = func(key, value []byte, _ uint64) bool { return w.keyspace.Right(key, value) } // updated or not
	for {
		n, _ := loop.draw() // it never fails
		for i := range n {
			if err := loop.timed(i, i+1, h); err != nil || ctx.Err() != nil {
				return err
			}
		}
	}
}

// Rest is over when the process has used less than restShare of a core in each of
// restTimes intervals; restLimit bounds it.
const (
	restShare = 0.05
	restTimes = 3
	restLimit = 2 * time.Minute
)

// restInterval is shorter in tests, which wait hundreds of times and compare no rates.
var restInterval = 50 * time.Millisecond

// rest waits until the store does nothing in the background, so that it takes nothing
// from those whose turn comes next. Without processor time it waits restTimes intervals.
func (w *worker) rest(ctx context.Context) error {
	deadline := time.Now().Add(restLimit)
	for quiet := 0; quiet < restTimes && time.Now().Before(deadline); {
		before := processorTime()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restInterval):
		}
		quiet++
		if (processorTime() - before).Seconds() > restShare*restInterval.Seconds() {
			quiet = 0
		}
	}
	return nil
}
