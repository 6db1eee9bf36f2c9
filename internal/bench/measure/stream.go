package measure

import (
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/values"
)

// A Stream is a sequence of lookups with their right answers, laid out so that
// walking it costs the harness sequential reads only. It is immutable, so every
// engine is asked exactly the same.
type Stream struct {
	kind   engine.Kind
	values values.Values
	keys   []byte
	ends   []uint64 // key i is keys[ends[i]:ends[i+1]]; ends[0] is 0
	words  []uint64 // values.Word of each key; empty if the keys are absent
}

// NewStream draws n lookups of one kind: positions from, from+1, ... of the
// seed's random order of all keys of that kind, beginning again at its end. Two
// streams of one seed that do not overlap and do not wrap share no key.
func NewStream(src keys.Source, v values.Values, kind engine.Kind, seed uint64, from, n int) *Stream {
	s := &Stream{kind: kind, values: v, ends: make([]uint64, 1, n+1)}
	size, appendKey := src.Absent(), src.AppendAbsent
	if kind == engine.Existing {
		size, appendKey = src.Present(), src.AppendPresent
		s.words = make([]uint64, 0, n)
	}
	order := keys.NewPermutation(size, seed)
	s.keys = make([]byte, 0, n*src.Describe().MaxLen)
	for i := range n {
		start := len(s.keys)
		s.keys = appendKey(s.keys, order.At((from+i)%size))
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
