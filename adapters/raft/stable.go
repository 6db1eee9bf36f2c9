package siftraft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/kv"
)

// ErrKeyNotFound is the error of Get and GetUint64 for a key that is not there. Raft knows it by its text.
var ErrKeyNotFound = errors.New("not found")

// Set stores a value of the stable store. It is on stable storage when Set returns nil.
func (s *Store) Set(key, value []byte) error {
	return s.db.Set(s.key(kindStable, key...), value, kv.Sync)
}

// Get returns the value that Set stored under key, which is the caller's, or [ErrKeyNotFound].
func (s *Store) Get(key []byte) ([]byte, error) {
	value, err := s.db.Get(s.key(kindStable, key...))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, ErrKeyNotFound
	}
	return value, err
}

// SetUint64 stores a number of the stable store, as Set does.
func (s *Store) SetUint64(key []byte, n uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 returns the number that SetUint64 stored under key, or [ErrKeyNotFound].
func (s *Store) GetUint64(key []byte) (uint64, error) { return s.number(s.key(kindStable, key...)) }

// number reads the number under a key of the DB.
func (s *Store) number(key []byte) (uint64, error) {
	value, err := s.db.Get(key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, ErrKeyNotFound
	case err != nil:
		return 0, err
	case len(value) != 8:
		return 0, fmt.Errorf("siftraft: %q has %d bytes, and a number has 8", key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}
