package filterpolicy

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrDeclined is matched by the error of Build when the policy made no filter: always
// with "none", and with a family if its construction failed.
var ErrDeclined = errors.New("filterpolicy: the policy made no filter")

// A Set is the filter of keys that are all known when it is built, for an application that asks and does not add: any
// policy's filter, with the number of its keys. The families xor, fuse, ribbon and gcs take the fewest bits and know no
// other way; for sets that change there are packages bloom, blocked, counting, scalable, cuckoo and quotient.
//
// Any number of goroutines may ask a Set. Reset, UnmarshalBinary and ReadFrom
// replace it, and need it for themselves. The zero Set has no keys.
type Set struct {
	policy Policy
	filter Filter
	data   []byte // what filter is a view of
	keys   int
}

// Build makes the set of the keys that an iterator yields, in any order and as
// often as they come: the same keys give the same bytes, unless they have a salt. It keeps none of them.
// While it builds, a key takes up to 32 bytes, once for each time that it comes.
func Build(p Policy, keys iter.Seq[[]byte]) (*Set, error) {
	return BuildHashes(p, func(yield func(uint64) bool) {
		for key := range keys {
			if !yield(Hash(key)) {
				return
			}
		}
	})
}

// BuildHashes is Build for keys with known hashes. Any distinct numbers are as good as hashes.
func BuildHashes(p Policy, hashes iter.Seq[uint64]) (*Set, error) {
	distinct := slices.Collect(hashes)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	b := p.NewBuilder()
	for _, h := range distinct {
		b.AddHash(h)
	}
	data, ok := b.Finish(nil)
	if !ok {
		return nil, fmt.Errorf("%w: %s, of %d keys", ErrDeclined, p, len(distinct))
	}
	filter, err := Decode(p.Name(), data)
	if err != nil {
		return nil, err
	}
	return &Set{p, filter, data, len(distinct)}, nil
}

// Contains reports whether a key may be in the set; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(Hash(key)) }

// ContainsHash is Contains for the key of a hash. It does not allocate.
func (s *Set) ContainsHash(h uint64) bool { return s.filter != nil && s.filter.MayContainHash(h) }

// Len returns the number of distinct keys.
func (s *Set) Len() int { return s.keys }

// Cap returns the number of distinct keys that the set was made for, which are those that it has.
func (s *Set) Cap() int { return s.keys }

// LoadFactor returns the keys as a share of Cap: 1, or 0 for a set without keys.
func (s *Set) LoadFactor() float64 { return float64(min(1, s.keys)) }

// Policy returns the policy that the set was built with, or nil for a zero Set.
func (s *Set) Policy() Policy { return s.policy }

// Size returns the memory of the filter in bytes.
func (s *Set) Size() int { return len(s.data) }

// FalsePositiveRate returns the probability that Contains says true for a key that is not in the
// set, by theory. It is 1 for a policy that nothing is known of.
func (s *Set) FalsePositiveRate() float64 {
	if s.filter == nil {
		return 0
	}
	e := Expected(s.policy, s.keys)
	if !e.OK {
		return 1
	}
	return e.FPR
}

// Reset removes all keys: it makes s the zero Set and gives its memory back.
func (s *Set) Reset() { *s = Set{} }

// Bytes returns the encoded filter, as a file would have it: Decode with the
// policy's name reads it. The caller must not change it.
func (s *Set) Bytes() []byte { return s.data }
