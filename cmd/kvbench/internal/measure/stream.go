package measure

import (
	"math"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

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
