package bloom

import (
	"encoding/binary"
	"io"
	"math/bits"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A ConcurrentSet is a Set to which any number of goroutines may add while any number ask, without a lock. Contains
// says true for each key whose Add returned before; a key that is being added may be seen or not. The methods that read
// the whole set (FillRatio, FalsePositiveRate, MarshalBinary, WriteTo) may run at any time too, and see at least what
// was there when they began.
//
// Reset, UnmarshalBinary and ReadFrom replace the set, and need it for themselves. A ConcurrentSet must not be copied.
// The zero one is only good for UnmarshalBinary and ReadFrom.
//
// Asking costs what it costs with a Set. Adding costs an atomic operation for each bit that is not set yet. A key that
// is there already costs only reads, so goroutines that add the same keys do not slow each other down.
type ConcurrentSet struct {
	words    []atomic.Uint64 // the cells, little-endian
	probes   int
	capacity int
	keys     [stripes]stripe
}

// stripes separate goroutines that count keys. They are chosen by hash.
const stripes = 16

// A stripe is a counter with a cache line of its own.
type stripe struct {
	n atomic.Int64
	_ [56]byte
}

// NewConcurrent is New for a ConcurrentSet.
func NewConcurrent(n int, rate float64) (*ConcurrentSet, error) {
	m, probes, err := shape(n, rate)
	if err != nil {
		return nil, err
	}
	return &ConcurrentSet{words: make([]atomic.Uint64, m/64), probes: probes, capacity: n}, nil
}

// Add adds a key.
func (s *ConcurrentSet) Add(key []byte) { s.AddNewHash(xxhash.Sum64(key)) }

// AddHash adds the key of a hash. Any distinct numbers are as good as hashes.
func (s *ConcurrentSet) AddHash(h uint64) { s.AddNewHash(h) }

// AddNew adds a key and reports whether it was new. True is certain, except among goroutines that add one key at the
// same time: at least one of them hears true, and each may.
func (s *ConcurrentSet) AddNew(key []byte) bool { return s.AddNewHash(xxhash.Sum64(key)) }

// AddNewHash is AddNew for the key of a hash.
func (s *ConcurrentSet) AddNewHash(h uint64) bool {
	_ = &s.words[0] // a zero set would lose the key: it panics as a nil map does
	n := uint64(len(s.words)) * 64
	z := hash64.Mix(h)
	added := false
	for i := range s.probes {
		at := hash64.Reduce(hash64.Point(z, i), n)
		word, bit := &s.words[at/64], uint64(1)<<(at%64)
		if word.Load()&bit == 0 && word.Or(bit)&bit == 0 {
			added = true
		}
	}
	if added {
		s.keys[z%stripes].n.Add(1)
	}
	return added
}

// Contains reports whether a key may have been added; false is certain.
func (s *ConcurrentSet) Contains(key []byte) bool { return s.ContainsHash(xxhash.Sum64(key)) }

// ContainsHash is Contains for the key of a hash. It allocates nothing and stops at the first clear bit.
func (s *ConcurrentSet) ContainsHash(h uint64) bool {
	n := uint64(len(s.words)) * 64
	z := hash64.Mix(h)
	for i := range s.probes {
		at := hash64.Reduce(hash64.Point(z, i), n)
		if s.words[at/64].Load()>>(at%64)&1 == 0 {
			return false
		}
	}
	return s.probes != 0
}

// Len returns the number of keys added that were new. A key that several goroutines add at the same time may be counted
// for each of them.
func (s *ConcurrentSet) Len() int {
	n := int64(0)
	for i := range s.keys {
		n += s.keys[i].n.Load()
	}
	return int(n)
}

// Cap returns the number of keys that the set was made for.
func (s *ConcurrentSet) Cap() int { return s.capacity }

// Size returns the memory of the cells in bytes.
func (s *ConcurrentSet) Size() int { return 8 * len(s.words) }

// FillRatio returns the share of bits that are set. It reads the whole set.
func (s *ConcurrentSet) FillRatio() float64 {
	if len(s.words) == 0 {
		return 0
	}
	ones := 0
	for i := range s.words {
		ones += bits.OnesCount64(s.words[i].Load())
	}
	return float64(ones) / float64(64*len(s.words))
}

// FalsePositiveRate returns the probability that Contains says true for a key that was not added, as the set is now. It
// reads the whole set.
func (s *ConcurrentSet) FalsePositiveRate() float64 { return fillRate(s.FillRatio(), s.probes) }

// Reset removes all keys and keeps the memory.
func (s *ConcurrentSet) Reset() {
	for i := range s.words {
		s.words[i].Store(0)
	}
	s.setLen(0)
}

func (s *ConcurrentSet) setLen(n int) {
	for i := range s.keys {
		s.keys[i].n.Store(0)
	}
	s.keys[0].n.Store(int64(n))
}

// Snapshot returns a Set of the keys that were added. The caller owns it.
func (s *ConcurrentSet) Snapshot() *Set {
	c := &Set{probes: s.probes, capacity: s.capacity, keys: s.Len(), cells: make([]byte, 0, s.Size())}
	for i := range s.words {
		c.cells = binary.LittleEndian.AppendUint64(c.cells, s.words[i].Load())
	}
	return c
}

func (s *ConcurrentSet) parts() [][]byte { return s.Snapshot().parts() }

// load keeps nothing of payload.
func (s *ConcurrentSet) load(payload []byte) error {
	var from Set
	if err := from.load(payload); err != nil {
		return err
	}
	s.words = make([]atomic.Uint64, len(from.cells)/8)
	for i := range s.words {
		s.words[i].Store(binary.LittleEndian.Uint64(from.cells[8*i:]))
	}
	s.probes, s.capacity = from.probes, from.capacity
	s.setLen(from.keys)
	return nil
}

// MarshalBinary returns the bytes of a snapshot.
func (s *ConcurrentSet) MarshalBinary() ([]byte, error) { return format.Append(nil, s.parts()) }

// AppendBinary appends the bytes of a snapshot to dst.
func (s *ConcurrentSet) AppendBinary(dst []byte) ([]byte, error) {
	return format.Append(dst, s.parts())
}

// WriteTo writes the bytes of a snapshot to w.
func (s *ConcurrentSet) WriteTo(w io.Writer) (n int64, err error) {
	return format.Write(w, s.parts())
}

// UnmarshalBinary makes s the set of data, which it checks and does not keep. An error matches filterpolicy.ErrCorrupt
// and leaves s as it was.
func (s *ConcurrentSet) UnmarshalBinary(data []byte) error { return format.Unmarshal(data, s.load) }

// ReadFrom makes s the set that it reads from r, up to the set's last byte. An error that is not one of r matches
// filterpolicy.ErrCorrupt; any leaves s as it was.
func (s *ConcurrentSet) ReadFrom(r io.Reader) (n int64, err error) {
	return format.Read(r, s.load)
}
