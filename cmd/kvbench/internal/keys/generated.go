package keys

import (
	"encoding/binary"
	"math/bits"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// Limits of a generated source.
const (
	// MinKeySize leaves room for the ordered word that carries the rank.
	MinKeySize = 8
	// MaxKeySize bounds a generated key, in bytes.
	MaxKeySize = 1 << 10
	// MaxGenerated bounds the number of generated keys.
	MaxGenerated = 1 << 31
)

// Generated is a source of 2n-1 keys in rank order: even ranks are present, odd
// ranks are absent, so every absent key has a present neighbour on both sides.
//
//	key = big-endian uint64(rank * stride + jitter) | pseudo-random bytes
//
// with 0 <= jitter < stride: the keys spread over the whole space like random
// ones, and still sort by rank.
type Generated struct {
	n       int
	size    int
	seed    uint64
	stride  uint64
	present Permutation
	absent  Permutation
}

// NewGenerated returns a source of n present and n-1 absent keys of size bytes.
func NewGenerated(n, size int, seed uint64) (*Generated, error) {
	if n < 2 || int64(n) > MaxGenerated {
		return nil, bench.Usagef("%d keys: want 2 to %d", n, int64(MaxGenerated))
	}
	if size < MinKeySize || size > MaxKeySize {
		return nil, bench.Usagef("keys of %d bytes: want %d to %d", size, MinKeySize, MaxKeySize)
	}
	stride, _ := bits.Div64(1, 0, uint64(2*n)) // floor(2^64 / 2n)
	return &Generated{
		n: n, size: size, seed: seed, stride: stride,
		present: NewPermutation(n, seed^loadOrder),
		absent:  NewPermutation(n-1, seed^askOrder),
	}, nil
}

// Present returns n.
func (g *Generated) Present() int { return g.n }

// Absent returns n-1.
func (g *Generated) Absent() int { return g.n - 1 }

// AppendPresent appends the i-th present key in load order.
func (g *Generated) AppendPresent(dst []byte, i int) []byte {
	return g.appendRank(dst, 2*uint64(g.present.At(i)))
}

// AppendAbsent appends the i-th absent key in random order.
func (g *Generated) AppendAbsent(dst []byte, i int) []byte {
	return g.appendRank(dst, 2*uint64(g.absent.At(i))+1)
}

// AppendInOrder appends the i-th present key in key order. The next absent key
// comes after it, and its first eight bytes, big-endian, are less than those of
// every later key.
func (g *Generated) AppendInOrder(dst []byte, i int) []byte {
	return g.appendRank(dst, 2*uint64(i))
}

// appendRank appends the key of a rank.
func (g *Generated) appendRank(dst []byte, rank uint64) []byte {
	h := Mix(g.seed ^ Mix(rank))
	jitter, _ := bits.Mul64(h, g.stride)
	dst = binary.BigEndian.AppendUint64(dst, rank*g.stride+jitter)
	var tail [8]byte
	for left := g.size - 8; left > 0; left -= 8 {
		h = Mix(h)
		binary.LittleEndian.PutUint64(tail[:], h)
		dst = append(dst, tail[:min(left, 8)]...)
	}
	return dst
}

// Describe says that the keys are generated, and from which seed.
func (g *Generated) Describe() Description {
	return Description{
		Origin: "generated", Seed: g.seed, Present: g.n, Absent: g.n - 1,
		MinLen: g.size, MaxLen: g.size, MeanLen: float64(g.size),
	}
}
