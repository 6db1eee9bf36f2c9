package compare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// ColdReads is what lookups read that find nothing of the store in the page cache.
type ColdReads struct {
	Files engine.Reads `json:"files"` // of the store's files, as counted between it and the system
	// Bytes that the system read from a device for the process, in whole pages; and the
	// requests that the device served meanwhile, whoever made them.
	DeviceBytes engine.Count `json:"device_bytes"`
	Requests    engine.Count `json:"device_requests"`
}

// Minus returns what was read after s was taken and before r.
func (r ColdReads) Minus(s ColdReads) ColdReads {
	return ColdReads{r.Files.Minus(s.Files), r.DeviceBytes.Minus(s.DeviceBytes), r.Requests.Minus(s.Requests)}
}

// Plus returns the sum.
func (r ColdReads) Plus(s ColdReads) ColdReads {
	return ColdReads{r.Files.Plus(s.Files), r.DeviceBytes.Plus(s.DeviceBytes), r.Requests.Plus(s.Requests)}
}

// treeSample describes the files of a store and what it keeps of them in memory.
type treeSample struct {
	Shape engine.LevelShape `json:"shape"` // of all levels
	Usage engine.Usage      `json:"usage"`
}

// tree describes the store.
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
	times, reads := measure.NewHistogram(), ColdReads{}
	loop := l.(*lookups)
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
			before := w.coldReads()
			if err := eachTimed(loop, from, min(from+coldChunk, n), times); err != nil {
				return nil, err
			}
			reads = reads.Plus(w.coldReads().Minus(before))
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	return &Sample{
		Operations: times.TotalCount(), Seconds: times.Mean() * float64(times.TotalCount()) / 1e9,
		P50: times.ValueAtPercentile(50), P99: times.ValueAtPercentile(99), P999: times.ValueAtPercentile(99.9),
		Max: times.Max(), Cold: &reads,
	}, nil
}

// eachTimed does the lookups of a chunk from one on up to another, and times each.
func eachTimed(loop *lookups, from, to int, times *hdrhistogram.Histogram) error {
	for i := from; i < to; i++ {
		start := time.Now()
		err := loop.some(i, i+1)
		took := time.Since(start)
		if err != nil {
			return err
		}
		if err := times.RecordValue(min(int64(took), int64(time.Minute))); err != nil {
			return fmt.Errorf("record a lookup of %v: %w", took, err)
		}
	}
	return nil
}

// coldReads returns what was read so far.
func (w *worker) coldReads() ColdReads {
	r := ColdReads{Files: engine.Reads{Calls: engine.Unknown, Bytes: engine.Unknown},
		DeviceBytes: readFromDevice(), Requests: requestsOf(string(w.start.Dir))}
	if m, ok := w.store.(engine.ReadMeter); ok {
		r.Files = m.FileReads()
	}
	return r
}
