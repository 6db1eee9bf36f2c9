package keys

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

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
// word. It tells values of different keys apart but for one chance in 2^64.
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
