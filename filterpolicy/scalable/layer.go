package scalable

import (
	"io"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/sizing"
)

// A bloomSet is what the two kinds of layers can do.
type bloomSet interface {
	AddNewHash(h uint64) bool
	Len() int
	Cap() int
	Size() int
	FillRatio() float64
	FalsePositiveRate() float64
	Reset()
	io.WriterTo
	io.ReaderFrom
}

// A layer is a bloom or a blocked set. Asking, which happens in a loop, knows
// the kinds and pays for no interface.
type layer struct {
	bloomSet
	bloom   *bloom.Set   // or nil
	blocked *blocked.Set // or nil
}

func bloomLayer(s *bloom.Set) layer     { return layer{bloomSet: s, bloom: s} }
func blockedLayer(s *blocked.Set) layer { return layer{bloomSet: s, blocked: s} }

// zeroLayer returns a layer of a kind, ready to be read, or false.
func zeroLayer(kind frame.Family) (layer, bool) {
	switch kind {
	case frame.Bloom:
		return bloomLayer(&bloom.Set{}), true
	case frame.Blocked:
		return blockedLayer(&blocked.Set{}), true
	}
	return layer{}, false
}

// kind returns the letter of the layer's envelope.
func (l layer) kind() frame.Family {
	if l.blocked != nil {
		return frame.Blocked
	}
	return frame.Bloom
}

func (l *layer) containsHash(h uint64) bool {
	if l.blocked != nil {
		return l.blocked.ContainsHash(h)
	}
	return l.bloom.ContainsHash(h)
}

// mostBlocked is how many times the bits of a classic layer a blocked one may have.
const mostBlocked = 1.5

func (sh shape) newLayer(i int) (layer, error) {
	n, rate := sh.layerKeys(i), sh.layerRate(i)
	if sh.blocked {
		classic, _ := sizing.Bits(n, rate)
		if keyBits, err := blocked.BitsFor(n, rate); err == nil &&
			keyBits*float64(n) <= mostBlocked*float64(classic)+512 {
			s, err := blocked.New(n, rate)
			return blockedLayer(s), err
		}
	}
	s, err := bloom.New(n, rate)
	return bloomLayer(s), err
}
