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
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
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

func (w *WrongAnswer) Error() string {
	return fmt.Sprintf("wrong answer for the %s key %q (hex %x): %s", w.Kind, w.Key, w.Key, w.What)
}

func (w *WrongAnswer) Unwrap() error { return bench.ErrWrongAnswer }

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

// A Stream is a sequence of lookups with their right answers, laid out so that
// walking it costs the harness sequential reads only. It is immutable, so every
// engine is asked exactly the same.
type Stream struct {
	kind   engine.Kind
	values keys.Values
	keys   []byte
	ends   []uint64 // key i is keys[ends[i]:ends[i+1]]; ends[0] is 0
	words  []uint64 // keys.Word of each key; empty if the keys are absent
}

// NewStream draws n lookups of one kind: positions from, from+1, ... of the
// seed's random order of all keys of that kind, beginning again at its end. Two
// streams of one seed that do not overlap and do not wrap share no key.
func NewStream(src keys.Source, v keys.Values, kind engine.Kind, seed uint64, from, n int) *Stream {
	order := keys.NewPermutation(Domain(src, kind), seed)
	return newStream(src, v, kind, n, func(i int) int { return order.At((from + i) % order.Len()) })
}

// NewSkewedStream draws n lookups of one kind by a Zipf distribution over all keys of
// that kind. Which keys are asked for often depends on the seed, and the draws on the
// seed and the pass.
func NewSkewedStream(src keys.Source, v keys.Values, kind engine.Kind, z *keys.Zipf, seed, pass uint64,
	n int) *Stream {
	order := keys.NewPermutation(Domain(src, kind), seed)
	random := keys.NewRandom(seed, pass)
	return newStream(src, v, kind, n, func(int) int { return order.At(z.Draw(random.Float())) })
}

// NewReplayStream takes lookups of one kind from a trace, in order: of the first n those
// of one of several workers, who take turns.
func NewReplayStream(src *keys.Trace, v keys.Values, kind engine.Kind, n, worker, workers int) *Stream {
	asked := Turns(src.Asked(kind == engine.Existing)[:n], worker, workers)
	return newStream(src, v, kind, len(asked), func(i int) int { return int(asked[i]) })
}

// Turns returns every workers-th of all, beginning with the worker's.
func Turns[T any](all []T, worker, workers int) []T {
	var own []T
	for i := worker; i < len(all); i += workers {
		own = append(own, all[i])
	}
	return own
}

// Domain returns how many keys of a kind there are.
func Domain(src keys.Source, kind engine.Kind) int {
	if kind == engine.Existing {
		return src.Present()
	}
	return src.Absent()
}

// newStream lays out n lookups of the keys that at numbers.
func newStream(src keys.Source, v keys.Values, kind engine.Kind, n int, at func(i int) int) *Stream {
	s := &Stream{kind: kind, values: v, ends: make([]uint64, 1, n+1)}
	appendKey := src.AppendAbsent
	if kind == engine.Existing {
		appendKey = src.AppendPresent
		s.words = make([]uint64, 0, n)
	}
	// Room for keys of the mean size: a few long ones must not make it many times as much.
	s.keys = make([]byte, 0, n*int(math.Ceil(src.Describe().MeanLen)))
	for i := range n {
		start := len(s.keys)
		s.keys = appendKey(s.keys, at(i))
		s.ends = append(s.ends, uint64(len(s.keys)))
		if s.words != nil {
			s.words = append(s.words, v.Word(s.keys[start:]))
		}
	}
	return s
}

// Len returns the number of lookups.
func (s *Stream) Len() int { return len(s.ends) - 1 }

// Kind returns what the lookups ask for.
func (s *Stream) Kind() engine.Kind { return s.kind }

// Key returns the key of lookup i. It must not be changed.
func (s *Stream) Key(i int) []byte { return s.keys[s.ends[i]:s.ends[i+1]:s.ends[i+1]] }

// right reports whether an answer to lookup i is right, by the cheap check.
func (s *Stream) right(i int, value []byte, found bool) bool {
	if s.words == nil {
		return !found
	}
	return found && s.values.HasWord(value, s.words[i])
}

// Together runs n workers at once and returns when all have ended. The first error
// ends the context of the others and is returned; one worker runs in the caller's goroutine.
func Together(ctx context.Context, n int, work func(ctx context.Context, worker int) error) error {
	if n == 1 {
		return work(ctx, 0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, n)
	for i := range n {
		go func() { ends <- work(ctx, i) }()
	}
	var first error
	for range n {
		err := <-ends
		if err == nil {
			continue
		}
		cancel() // the others need not go on
		if first == nil || errors.Is(first, context.Canceled) {
			first = err // what ended the others, and not that they were ended
		}
	}
	return first
}
