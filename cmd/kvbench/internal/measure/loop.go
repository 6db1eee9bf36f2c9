// Package measure loads stores, draws lookups, times them, checks every answer, and says
// what they cost: repetitions with their counters, percentiles, false-positive rates beside
// theory, and the relations that counters keep among each other.
//
// Two loops answer two questions. Throughput reads the clock once around many
// lookups, so its mean is free of timer cost. Latency reads the clock around
// each lookup, so its percentiles include one clock reading each; TimerCost
// says how much that is.
package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// chunk is the number of lookups between two looks at the context: rare enough
// to cost nothing, often enough to stop within milliseconds.
const chunk = 1024

// A WrongAnswer says which lookup an engine got wrong. It matches
// bench.ErrWrongAnswer.
type WrongAnswer struct {
	Kind engine.Kind
	Key  []byte // a copy
	What string // what came instead of the right answer
}

// Error names the key, quoted and in hex.
func (w *WrongAnswer) Error() string {
	return fmt.Sprintf("wrong answer for the %s key %q (hex %x): %s", w.Kind, w.Key, w.Key, w.What)
}

// Unwrap makes errors.Is(err, bench.ErrWrongAnswer) true.
func (w *WrongAnswer) Unwrap() error { return bench.ErrWrongAnswer }

// wrong describes a wrong answer to lookup i.
func (s *Stream) wrong(i int, value []byte, found bool) error {
	w := &WrongAnswer{Kind: s.kind, Key: append([]byte(nil), s.Key(i)...)}
	switch {
	case !found:
		w.What = "not found"
	case s.kind == engine.Absent:
		w.What = fmt.Sprintf("found, with a value of %d bytes", len(value))
	case len(value) != s.values.Size():
		w.What = fmt.Sprintf("a value of %d bytes, not %d", len(value), s.values.Size())
	default:
		w.What = "the value of another key, or damaged bytes"
	}
	return w
}

// check compares every byte of the answer to lookup i. It returns scratch, grown.
func (s *Stream) check(i int, value []byte, found bool, scratch []byte) ([]byte, error) {
	ok := s.right(i, value, found)
	if ok && found {
		ok, scratch = s.values.Check(scratch, s.Key(i), value)
	}
	if !ok {
		return scratch, s.wrong(i, value, found)
	}
	return scratch, nil
}

// Throughput runs the lookups of s back to back and returns the wall time of
// the whole loop. Presence, size and first eight bytes of each answer are checked.
func Throughput(ctx context.Context, r engine.Reader, s *Stream) (time.Duration, error) {
	dst := make([]byte, 0, s.values.Size()+64)
	start := time.Now()
	for from := 0; from < s.Len(); from += chunk {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		for i := from; i < min(from+chunk, s.Len()); i++ {
			value, found, err := r.Get(dst[:0], s.Key(i))
			if err != nil {
				return 0, fmt.Errorf("look up %q: %w", s.Key(i), err)
			}
			if !s.right(i, value, found) {
				return 0, s.wrong(i, value, found)
			}
		}
	}
	return time.Since(start), nil
}

// Latency times each lookup of s by itself and adds it to h in nanoseconds. In
// between, off the clock, every byte of each answer is checked.
func Latency(ctx context.Context, r engine.Reader, s *Stream, h *hdrhistogram.Histogram) error {
	dst := make([]byte, 0, s.values.Size()+64)
	scratch := make([]byte, 0, s.values.Size()+64)
	for i := range s.Len() {
		if i%chunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		start := time.Now()
		value, found, err := r.Get(dst[:0], s.Key(i))
		took := time.Since(start)
		if err != nil {
			return fmt.Errorf("look up %q: %w", s.Key(i), err)
		}
		if scratch, err = s.check(i, value, found, scratch); err != nil {
			return err
		}
		if err := h.RecordValue(min(int64(took), maxLatency)); err != nil {
			return fmt.Errorf("record a latency of %v: %w", took, err)
		}
	}
	return nil
}
