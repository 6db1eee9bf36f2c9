package oracle

import (
	"encoding/binary"
	"errors"

	"github.com/siftkv/siftkv/filterpolicy"
)

// Name is the family's name in files.
const Name = "oracle"

// A filter in a file is the number of its key set:
//
//	number  uint64
const encodedSize = 8

// errUnknown is the error of a filter whose keys this process does not have.
var errUnknown = errors.New("oracle: the keys of this file are in the memory of the process that wrote it, which is another")

// A Policy makes and reads the oracles of one store.
type Policy struct{ sets *keySets }

// New returns the policy of the store in a directory. Policies of one directory have
// the same key sets, so that a store may be closed and opened again.
func New(dir string) Policy { return Policy{of(dir)} }

// Name returns the family's name.
func (Policy) Name() string { return Name }

// String returns the name, as there are no parameters.
func (Policy) String() string { return Name }

// NewBuilder returns an empty builder.
func (p Policy) NewBuilder() filterpolicy.Builder { return &builder{sets: p.sets} }

// Decode returns the key set that data names.
func (p Policy) Decode(data []byte) (filterpolicy.Filter, error) {
	if set := p.lookUp(data); set != nil {
		return set, nil
	}
	return nil, errUnknown
}

// lookUp returns the key set that data names, nil if there is none.
func (p Policy) lookUp(data []byte) *keySet {
	if len(data) != encodedSize {
		return nil
	}
	return p.sets.at(binary.LittleEndian.Uint64(data))
}

// builder collects the hashes of one file after another.
type builder struct {
	sets   *keySets
	hashes []uint64
}

// AddHash adds the hash of a key.
func (b *builder) AddHash(h uint64) {
	if n := len(b.hashes); n == 0 || b.hashes[n-1] != h {
		b.hashes = append(b.hashes, h)
	}
}

// Finish keeps the hashes in memory and appends the number of their set to dst.
func (b *builder) Finish(dst []byte) (data []byte, ok bool) {
	number := b.sets.add(newKeySet(b.hashes))
	b.hashes = b.hashes[:0]
	return binary.LittleEndian.AppendUint64(dst, number), true
}

var _ filterpolicy.Decoder = Policy{}
