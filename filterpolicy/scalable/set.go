package scalable

import (
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// Options are what New may be told beyond capacity and rate. Nil and zero fields mean the defaults.
type Options struct {
	// Growth is how many times the keys of a layer the next one is made for,
	// from 1 to 1000. The default is 2.
	Growth float64

	// Tightening is the next layer's rate as a share of a layer's, from 0.1 to 0.95. More saves
	// bits when there are many layers, less when there are few. The default is 0.8.
	Tightening float64

	// Blocked makes layers of lines, one cache miss each.
	Blocked bool
}

// minRate keeps the least rate of a layer, 1e-12, well below what is promised.
const minRate = 1e-9

// A Set is a scalable Bloom filter.
//
// A Set needs a lock if one goroutine adds while another does anything; any number may ask at once.
// The zero Set is only good for UnmarshalBinary and ReadFrom.
type Set struct {
	layers []layer // at least one, except in a zero Set; the last one takes keys
	shape  shape
}

// A shape tells what layers a set has.
type shape struct {
	rate, tightening, growth float64
	first                    int // keys of the first layer
	blocked                  bool
}

// New returns an empty set. Its first layer holds n keys, 1 to 2^40. Its rate of false positives
// stays at or below the given one, from 1e-9 to 0.9, with any number of keys.
func New(n int, rate float64, o *Options) (*Set, error) {
	sh := shape{rate: rate, tightening: 0.8, growth: 2, first: n}
	if o != nil {
		sh.blocked = o.Blocked
		if o.Growth != 0 {
			sh.growth = o.Growth
		}
		if o.Tightening != 0 {
			sh.tightening = o.Tightening
		}
	}
	if err := sh.check(); err != nil {
		return nil, err
	}
	l, err := sh.newLayer(0)
	if err != nil {
		return nil, err
	}
	return &Set{[]layer{l}, sh}, nil
}

// check returns an error for the user. The comparisons refuse NaN.
func (sh shape) check() error {
	if err := sizing.Check(sh.first, sh.rate, minRate); err != nil {
		return err
	}
	if !(sh.growth >= 1 && sh.growth <= 1000) {
		return fmt.Errorf("filterpolicy: growth must be from 1 to 1000, not %g", sh.growth)
	}
	if !(sh.tightening >= 0.1 && sh.tightening <= 0.95) {
		return fmt.Errorf("filterpolicy: tightening must be from 0.1 to 0.95, not %g", sh.tightening)
	}
	return nil
}

func (sh shape) layerKeys(i int) int {
	return int(min(math.Round(float64(sh.first)*math.Pow(sh.growth, float64(i))), sizing.MaxKeys))
}

// layerRate returns the rate that layer i is made for. The rates are a geometric
// series whose sum is the promised one.
func (sh shape) layerRate(i int) float64 {
	return max(sh.rate*(1-sh.tightening)*math.Pow(sh.tightening, float64(i)), sizing.MinRate)
}

// leastSize returns a number of bytes that layer i has at least. No filter holds n keys at
// a rate with less than n * log2(1/rate) bits; those of this package have 1.44 times as many.
func (sh shape) leastSize(i int) int {
	return int(float64(sh.layerKeys(i)) * -math.Log2(sh.layerRate(i)) / 8)
}

// Add adds a key.
func (s *Set) Add(key []byte) { s.AddNewHash(xxhash.Sum64(key)) }

// AddHash adds the key of a hash. Any distinct numbers are as good as hashes.
func (s *Set) AddHash(h uint64) { s.AddNewHash(h) }

// AddNew adds a key and reports whether it was new. True is certain; a new key
// is taken for an old one at the rate of false positives.
func (s *Set) AddNew(key []byte) bool { return s.AddNewHash(xxhash.Sum64(key)) }

// AddNewHash is AddNew for the key of a hash.
func (s *Set) AddNewHash(h uint64) bool {
	if s.ContainsHash(h) {
		return false
	}
	last := s.layers[len(s.layers)-1] // a zero Set would lose the key: it panics as a nil map does
	if last.Len() >= last.Cap() {
		last = s.grow(last)
	}
	return last.AddNewHash(h)
}

// grow makes a layer and returns it. If there can be none, as the address space is full, the last
// one goes on taking keys: a rate above the promised one is better than a lost key.
func (s *Set) grow(last layer) layer {
	l, err := s.shape.newLayer(len(s.layers))
	if err != nil {
		return last
	}
	s.layers = append(s.layers, l)
	return l
}

// Contains reports whether a key may have been added; false is certain.
func (s *Set) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for the key of a hash. It allocates nothing. It asks
// the last layer first, which mostly has the most keys.
func (s *Set) ContainsHash(h uint64) bool {
	for i := len(s.layers) - 1; i >= 0; i-- {
		if s.layers[i].containsHash(h) {
			return true
		}
	}
	return false
}

// Len returns the number of keys added that were new: repeated keys do not
// count, and keys that were taken for old ones do not either.
func (s *Set) Len() (n int) {
	for _, l := range s.layers {
		n += l.Len()
	}
	return n
}

// Cap returns the number of keys that the present layers hold before the next one is made.
func (s *Set) Cap() (n int) {
	for _, l := range s.layers {
		n += l.Cap()
	}
	return n
}

// Size returns the memory of the layers in bytes.
func (s *Set) Size() (n int) {
	for _, l := range s.layers {
		n += l.Size()
	}
	return n
}

// Layers returns the number of layers.
func (s *Set) Layers() int { return len(s.layers) }

// FillRatio returns the share of bits that are set, over all layers. It reads the whole set.
func (s *Set) FillRatio() float64 {
	ones, size := 0.0, 0.0
	for _, l := range s.layers {
		ones += l.FillRatio() * float64(l.Size())
		size += float64(l.Size())
	}
	return ones / max(1, size)
}

// FalsePositiveRate returns the probability that Contains says true for a key
// that was not added, as the set is now. It reads the whole set.
func (s *Set) FalsePositiveRate() float64 {
	right := 1.0
	for _, l := range s.layers {
		right *= 1 - l.FalsePositiveRate()
	}
	return 1 - right
}

// Reset removes all keys, and all layers but the first.
func (s *Set) Reset() {
	if len(s.layers) == 0 {
		return
	}
	clear(s.layers[1:])
	s.layers = s.layers[:1]
	s.layers[0].Reset()
}
