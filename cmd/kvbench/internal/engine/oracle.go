package engine

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/filterpolicy"
)

// OracleFilter is the name of the filter that does not err: the bound that every filter is
// held against.
//
// The keys of each sorted file, as 64-bit hashes, are in the memory of the process that
// wrote it; the file itself has a number of eight bytes in place of a filter. So the oracle
// takes next to nothing in the files and in what stores count, and its memory, some twenty
// bytes per key and file that was ever written, belongs to the harness. Only the process
// that wrote a store reads it with its filters.
//
// Two keys of equal hash would make it err. Among n keys of a store and m that are asked
// for there are n m / 2^64 such pairs to be expected, one in ten million for a million of
// each; the harness counts false positives, and checks that there are none.
const OracleFilter = "oracle"

// A filter in a file is the number of its key set:
//
//	number  uint64
const oracleSize = 8

// errOtherOracle is the error of a filter whose keys this process does not have.
var errOtherOracle = errors.New(
	"oracle: the keys of this file are in the memory of the process that wrote it, which is another")

// An oraclePolicy makes and reads the oracles of one store.
type oraclePolicy struct{ sets *keySets }

// newOracle returns the policy of the store in a directory. Policies of one directory have
// the same key sets, so that a store may be closed and opened again.
func newOracle(dir string) oraclePolicy { return oraclePolicy{keySetsOf(dir)} }

func (oraclePolicy) Name() string { return OracleFilter }

func (oraclePolicy) String() string { return OracleFilter }

func (p oraclePolicy) NewBuilder() filterpolicy.Builder { return &oracleBuilder{sets: p.sets} }

// Decode returns the key set that data names.
func (p oraclePolicy) Decode(data []byte) (filterpolicy.Filter, error) {
	if set := p.lookUp(data); set != nil {
		return set, nil
	}
	return nil, errOtherOracle
}

// lookUp returns the key set that data names, nil if there is none.
func (p oraclePolicy) lookUp(data []byte) keySet {
	if len(data) != oracleSize {
		return nil
	}
	return p.sets.at(binary.LittleEndian.Uint64(data))
}

// oracleBuilder collects the hashes of one file after another.
type oracleBuilder struct {
	sets   *keySets
	hashes []uint64
}

func (b *oracleBuilder) AddHash(h uint64) {
	if n := len(b.hashes); n == 0 || b.hashes[n-1] != h {
		b.hashes = append(b.hashes, h)
	}
}

// Finish keeps the hashes in memory and appends the number of their set to dst.
func (b *oracleBuilder) Finish(dst []byte) (data []byte, ok bool) {
	number := b.sets.add(newKeySet(b.hashes))
	b.hashes = b.hashes[:0]
	return binary.LittleEndian.AppendUint64(dst, number), true
}

func (p oraclePolicy) pebble() pebble.FilterPolicy { return pebbleOracle{p} }

type pebbleOracle struct{ of oraclePolicy }

func (p pebbleOracle) Name() string { return p.of.Name() }

// MayContain asks the key set that filter names, and says yes if there is none.
func (p pebbleOracle) MayContain(_ pebble.FilterType, filter, key []byte) bool {
	set := p.of.lookUp(filter)
	return set == nil || set.MayContainHash(filterpolicy.Hash(key))
}

func (p pebbleOracle) NewWriter(pebble.FilterType) pebble.FilterWriter {
	return &pebbleOracleWriter{p.of.NewBuilder()}
}

type pebbleOracleWriter struct{ of filterpolicy.Builder }

func (w *pebbleOracleWriter) AddKey(key []byte) { w.of.AddHash(filterpolicy.Hash(key)) }

// Finish keeps the hashes and appends the number of their set to dst.
func (w *pebbleOracleWriter) Finish(dst []byte) []byte {
	dst, _ = w.of.Finish(dst)
	return dst
}

var _ filterpolicy.Decoder = oraclePolicy{}

// Key sets of the stores of the process by directory. What belongs to a directory that is gone
// is dropped when the next store is made.
var (
	oraclesMu sync.Mutex
	oracles   = map[string]*keySets{}
)

// keySets are the key sets of the files of one store. They may be used by several
// goroutines.
type keySets struct {
	mu   sync.RWMutex
	sets []keySet // by number
}

// keySetsOf returns the key sets of the store in a directory, which need not be there yet.
func keySetsOf(dir string) *keySets {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	oraclesMu.Lock()
	defer oraclesMu.Unlock()
	for d := range oracles {
		if _, err := os.Stat(d); d != dir && errors.Is(err, fs.ErrNotExist) {
			delete(oracles, d)
		}
	}
	s, ok := oracles[dir]
	if !ok {
		s = &keySets{}
		oracles[dir] = s
	}
	return s
}

func (s *keySets) add(set keySet) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = append(s.sets, set)
	return uint64(len(s.sets) - 1)
}

func (s *keySets) at(number uint64) keySet {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if number >= uint64(len(s.sets)) {
		return nil
	}
	return s.sets[number]
}

// A keySet is a set of hashes. It does not change, and any number of goroutines may ask it.
type keySet map[uint64]struct{}

func newKeySet(hashes []uint64) keySet {
	s := make(keySet, len(hashes))
	for _, h := range hashes {
		s[h] = struct{}{}
	}
	return s
}

func (s keySet) MayContainHash(h uint64) bool {
	_, ok := s[h]
	return ok
}
