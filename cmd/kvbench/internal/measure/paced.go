package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// A Lane is lookups of one kind that are due at moments of their own.
type Lane struct {
	Reader engine.Reader
	Stream *Stream
	Due    []time.Duration // of each lookup of the stream, since the start; ascending

	Latency *hdrhistogram.Histogram // from when a lookup was due, in nanoseconds
	Service *hdrhistogram.Histogram // from when it began
}

// Paced does the lookups of one lane or more in one goroutine, each when it is due, or once
// the one before has ended if that is later: what waits for a slow lookup is late
// as well, and its latency says so. Every byte of each answer is checked after the clock was
// read. It returns how late the lookup began that began latest.
func Paced(ctx context.Context, start time.Time, lanes []Lane) (latest time.Duration, err error) {
	room := lanes[0].Stream.values.Size() + 64
	dst, scratch := make([]byte, 0, room), make([]byte, 0, room)
	next := make([]int, len(lanes))
	for {
		l := nextLane(lanes, next)
		if l < 0 {
			return latest, nil
		}
		lane, i := &lanes[l], next[l]
		next[l]++
		due := start.Add(lane.Due[i])
		if err := WaitUntil(ctx, due); err != nil {
			return 0, err
		}
		begin := time.Now()
		value, found, err := lane.Reader.Get(dst[:0], lane.Stream.Key(i))
		end := time.Now()
		if err != nil {
			return 0, fmt.Errorf("look up %q: %w", lane.Stream.Key(i), err)
		}
		if scratch, err = lane.Stream.check(i, value, found, scratch); err != nil {
			return 0, err
		}
		latest = max(latest, begin.Sub(due))
		_ = lane.Latency.RecordValue(min(int64(end.Sub(due)), maxLatency)) // in bounds
		_ = lane.Service.RecordValue(min(int64(end.Sub(begin)), maxLatency))
	}
}

// nextLane returns the lane whose next lookup is due first, -1 if none is left.
func nextLane(lanes []Lane, next []int) int {
	first := -1
	for i := range lanes {
		if next[i] < len(lanes[i].Due) && (first < 0 || lanes[i].Due[next[i]] < lanes[first].Due[next[first]]) {
			first = i
		}
	}
	return first
}

// WaitUntil waits for a moment, exactly: the last bit of it without sleeping, which
// takes as long as the system likes. It returns early with the error of a context that
// ends.
func WaitUntil(ctx context.Context, due time.Time) error {
	const rough = 200 * time.Microsecond
	if wait := time.Until(due) - rough; wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	for time.Until(due) > 0 && ctx.Err() == nil {
		// The moment is near.
	}
	return ctx.Err()
}
