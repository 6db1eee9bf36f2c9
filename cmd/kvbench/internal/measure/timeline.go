package measure

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A Timeline says what happened over time. Times are in seconds from its beginning.
type Timeline struct {
	Interval   float64 `json:"interval_seconds"`
	Operations []int64 `json:"operations"` // that ended in each interval
	Events     []Event `json:"events"`     // by their beginning
	Dropped    int     `json:"events_dropped"`
}

// An Event is a piece of background work.
type Event struct {
	Kind        engine.BackgroundKind `json:"kind"`
	From        float64               `json:"from"`
	To          float64               `json:"to"`
	Level       int                   `json:"level"`        // the upper input level of a compaction
	OutputLevel int                   `json:"output_level"` // of a compaction
	Bytes       int64                 `json:"bytes"`        // written
}

// Bounds of a timeline. Its intervals begin short and double whenever there would be
// more of them, so that there are enough of a short run and not too many of a long one.
const (
	maxIntervals  = 240
	firstInterval = time.Millisecond
	maxEvents     = 4096
)

// A Recorder records one timeline. Its methods may be called from several goroutines.
type Recorder struct {
	start time.Time

	mu         sync.Mutex
	interval   time.Duration
	operations []int64
	events     []engine.Background
	dropped    int
}

// StartTimeline begins a timeline.
func StartTimeline() *Recorder { return &Recorder{start: time.Now(), interval: firstInterval} }

// Add notes that n operations have ended by a moment.
func (r *Recorder) Add(n int, ended time.Time) {
	at := ended.Sub(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reach(at)
	r.operations[max(0, at)/r.interval] += int64(n)
}

// reach makes room for a moment.
func (r *Recorder) reach(at time.Duration) {
	for at/r.interval >= maxIntervals {
		half := (len(r.operations) + 1) / 2
		for i := range half {
			sum := r.operations[2*i]
			if 2*i+1 < len(r.operations) {
				sum += r.operations[2*i+1]
			}
			r.operations[i] = sum
		}
		r.operations = r.operations[:half]
		r.interval *= 2
	}
	for len(r.operations) <= int(max(0, at)/r.interval) {
		r.operations = append(r.operations, 0)
	}
}

// Background notes work that has ended.
func (r *Recorder) Background(b engine.Background) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == maxEvents {
		r.dropped++
		return
	}
	r.events = append(r.events, b)
}

// Timeline returns what was recorded until a moment. What the store does later is not
// in it.
func (r *Recorder) Timeline(until time.Time) *Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reach(until.Sub(r.start))
	t := &Timeline{Interval: r.interval.Seconds(), Operations: slices.Clone(r.operations), Events: []Event{},
		Dropped: r.dropped}
	for _, b := range r.events {
		t.Events = append(t.Events, Event{
			Kind: b.Kind, From: max(0, b.Began.Sub(r.start).Seconds()), To: b.Ended.Sub(r.start).Seconds(),
			Level: b.Level, OutputLevel: b.OutputLevel, Bytes: b.Bytes,
		})
	}
	slices.SortStableFunc(t.Events, func(a, b Event) int { return cmp.Compare(a.From, b.From) })
	return t
}
