package keys

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

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

// A Permutation is a keyed bijection of [0, n) that takes constant memory. It
// is a four-round Feistel network over the smallest even number of bits that
// holds n-1, walked again while the result falls outside (cycle walking: J.
// Black, P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). The
// domain is less than four times n, so a step takes under four walks on average.
//
// It shuffles; it does not hide anything from an adversary.
type Permutation struct {
	n    uint64
	half uint // bits of each half
	mask uint64
	keys [4]uint64
}

// Seeds of the orders of a source are its own seed XOR one of these, so that
// loading and asking walk unrelated permutations.
const (
	loadOrder = 0x70726573
	askOrder  = 0x61627365
)

// NewPermutation returns the permutation of [0, n) that belongs to seed.
func NewPermutation(n int, seed uint64) Permutation {
	p := Permutation{n: uint64(n), half: 1}
	if n > 1 {
		p.half = uint(bits.Len64(p.n-1)+1) / 2
	}
	p.mask = 1<<p.half - 1
	for i := range p.keys {
		p.keys[i] = Mix(seed + uint64(i) + 1)
	}
	return p
}

// Len returns n.
func (p Permutation) Len() int { return int(p.n) }

// At returns the image of i, 0 <= i < n.
func (p Permutation) At(i int) int {
	x := uint64(i)
	for {
		left, right := x>>p.half, x&p.mask
		for _, k := range p.keys {
			left, right = right, left^Mix(right^k)&p.mask
		}
		x = left<<p.half | right
		if x < p.n {
			return int(x)
		}
	}
}

// Mix is the output function of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014): a bijection of 64-bit words
// whose output bits all depend on all input bits.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Theta is the skew that YCSB uses everywhere.
const Theta = 0.99

// A Zipf draws ranks below n, rank r with a probability proportional to
// 1/(r+1)^theta, by the method of Gray et al., "Quickly generating billion-record
// synthetic databases", SIGMOD 1994, which YCSB uses. It is immutable.
type Zipf struct {
	n                 float64
	zetaN, alpha, eta float64
	second            float64 // 1 + 0.5^theta
}

// NewZipf returns the distribution over n ranks, n at least 1, of skew theta,
// 0 < theta < 1.
func NewZipf(n int, theta float64) *Zipf {
	z := &Zipf{n: float64(n), zetaN: zeta(n, theta), alpha: 1 / (1 - theta), second: 1 + math.Pow(0.5, theta)}
	z.eta = (1 - math.Pow(2/z.n, 1-theta)) / (1 - z.second/z.zetaN)
	return z
}

// zeta returns the sum of 1/i^theta for i up to n: the first terms one by one, the
// others by the formula of Euler and Maclaurin, which leaves an error below 1e-12.
func zeta(n int, theta float64) float64 {
	const exact = 1000
	sum := 0.0
	for i := 1; i <= min(n, exact); i++ {
		sum += math.Pow(float64(i), -theta)
	}
	if n <= exact {
		return sum
	}
	a, b := float64(exact), float64(n)
	f := func(x float64) float64 { return math.Pow(x, -theta) }
	d := func(x float64) float64 { return -theta * math.Pow(x, -theta-1) }
	integral := (math.Pow(b, 1-theta) - math.Pow(a, 1-theta)) / (1 - theta)
	return sum + integral + (f(b)-f(a))/2 + (d(b)-d(a))/12
}

// Draw returns the rank that belongs to u, 0 <= u < 1.
func (z *Zipf) Draw(u float64) int {
	uz := u * z.zetaN
	switch {
	case uz < 1:
		return 0
	case uz < z.second:
		return min(1, int(z.n)-1)
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}

// A Random is SplitMix64: fast, seeded, without allocation.
type Random struct{ state uint64 }

// NewRandom returns the numbers of one pass of a seed.
func NewRandom(seed, pass uint64) *Random { return &Random{Mix(seed) ^ Mix(pass+1)<<1} }

// Next returns 64 bits.
func (r *Random) Next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return Mix(r.state)
}

// Float returns a number in [0, 1).
func (r *Random) Float() float64 { return float64(r.Next()>>11) / (1 << 53) }

// Below returns a number in [0, n).
func (r *Random) Below(n int) int { return int(r.Next() % uint64(n)) }

// Limits of a value, in bytes: MinValueSize so that every value carries its word.
const (
	MinValueSize = 16
	MaxValueSize = 1 << 20
)

// Values makes the value of a key from the key alone, so that any answer of any engine can
// be checked without keeping what was written. It is immutable.
//
// A value starts with eight bytes that depend on every byte of the key and on the seed;
// half of it is pseudo-random and the other half repeats the first, so that a compressor
// reaches about one half (as db_bench of LevelDB and RocksDB has it by default). See Random for
// values that no compressor makes smaller.
type Values struct {
	size   int
	seed   uint64
	random bool
}

// NewValues returns the values of size bytes that belong to seed.
func NewValues(size int, seed uint64) (Values, error) {
	if size < MinValueSize || size > MaxValueSize {
		return Values{}, bench.Usagef("values of %d bytes: want %d to %d", size, MinValueSize, MaxValueSize)
	}
	return Values{size: size, seed: Mix(seed ^ 0x76616c75)}, nil
}

// Random returns values with the same first words, of which every byte is pseudo-random.
func (v Values) Random() Values {
	v.random = true
	return v
}

// Size returns the bytes of every value.
func (v Values) Size() int { return v.size }

// Word returns the first eight bytes of the key's value as a little-endian
// word. It differs for values of different keys, except with a chance of one in 2^64.
func (v Values) Word(key []byte) uint64 { return Mix(xxhash.Sum64(key) ^ v.seed) }

// Append appends the value of key to dst.
func (v Values) Append(dst, key []byte) []byte {
	start := len(dst)
	word := v.Word(key)
	if v.random {
		dst = binary.LittleEndian.AppendUint64(dst, word)
		// Each of the others by itself, and not from the one before: a processor makes several at a time.
		for i := uint64(1); i < uint64(v.size+7)/8; i++ {
			dst = binary.LittleEndian.AppendUint64(dst, Mix(word^i))
		}
		return dst[:start+v.size]
	}
	half := (v.size + 1) / 2
	for left := half; left > 0; left -= 8 {
		dst = binary.LittleEndian.AppendUint64(dst, word)
		word = Mix(word)
	}
	dst = dst[:start+half]
	return append(dst, dst[start:start+v.size-half]...)
}

// HasWord reports whether value has the right size and starts with word. It is
// the cheap check of a timed loop.
func (v Values) HasWord(value []byte, word uint64) bool {
	return len(value) == v.size && binary.LittleEndian.Uint64(value) == word
}

// Check reports whether value is, in every byte, the value of key. It appends
// the right value to scratch and returns the extended slice for the next call.
func (v Values) Check(scratch, key, value []byte) (ok bool, next []byte) {
	next = v.Append(scratch[:0], key)
	return bytes.Equal(next, value), next
}
