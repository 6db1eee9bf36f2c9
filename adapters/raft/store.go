package siftraft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/siftkv/siftkv/kv"
)

// The keys of a Store, after its prefix:
//
//	'c'                           the commit index of the last StoreLogs that had one staged, 8 bytes, big-endian
//	'l' index (8 bytes, big-end.) an entry of the log, see entry.go
//	's' key                       a value of the stable store; numbers have 8 bytes, big-endian
const (
	kindCommit = 'c'
	kindLog    = 'l'
	kindStable = 's'
)

// A Store is the log and the stable store of a node, in one kv.DB. It is a [raft.LogStore], a [raft.StableStore], a
// [raft.MonotonicLogStore] and a [raft.CommitTrackingLogStore].
//
// All methods are safe for concurrent use. Those that change the log wait for one another; nobody who reads
// waits for them, nor for a sync. What a method has written is on stable storage when it returns.
//
// After an error of a write the write may be there or not. The store then reads the ends of its log anew, and
// the next StoreLogs leaves nothing behind its last entry that the failed one may have put there.
type Store struct {
	db     *kv.DB
	owned  bool // Close closes db
	prefix []byte
	log    keyRange // the keys of entries
	staged atomic.Uint64

	writing   sync.Mutex // held by what changes the log
	committed uint64     // the commit index that is in the store; guarded by writing
	doubtful  bool       // a StoreLogs has failed: what it wrote may be there; guarded by writing

	mu   sync.Mutex
	ends ends
}

type keyRange struct{ lo, hi []byte }

var (
	_ raft.LogStore               = (*Store)(nil)
	_ raft.StableStore            = (*Store)(nil)
	_ raft.MonotonicLogStore      = (*Store)(nil)
	_ raft.CommitTrackingLogStore = (*Store)(nil)
)

// Open opens the store in a directory, or makes one. The options are those of [kv.Open]; nil is [kv.Small]. Close it
// when raft has shut down.
func Open(dir string, o *kv.Options) (*Store, error) {
	if o == nil {
		o = kv.Small()
	}
	db, err := kv.Open(dir, o)
	if err != nil {
		return nil, err
	}
	s, err := New(db, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.owned = true
	return s, nil
}

// New makes a store of the keys of db that begin with prefix, which nobody else may write. It reads the first and the
// last key of the log, and nothing else. One Store at a time has a prefix.
func New(db *kv.DB, prefix []byte) (*Store, error) {
	s := &Store{db: db, prefix: bytes.Clone(prefix)}
	s.log = keyRange{s.key(kindLog), s.key(kindLog + 1)}
	committed, err := s.GetCommitIndex()
	if err != nil {
		return nil, err
	}
	s.committed = committed
	s.staged.Store(committed)
	_, err = s.bounds()
	return s, err
}

// Close closes the DB if Open has opened it. Nobody may use the store any more.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.db.Close()
}

func (s *Store) key(kind byte, more ...byte) []byte {
	k := make([]byte, 0, len(s.prefix)+1+len(more))
	return append(append(append(k, s.prefix...), kind), more...)
}

func (s *Store) entryKey(index uint64) []byte {
	k := append(make([]byte, 0, len(s.log.lo)+8), s.log.lo...)
	return binary.BigEndian.AppendUint64(k, index)
}

// after returns the key that all entries after index begin from.
func (s *Store) after(index uint64) []byte {
	if index+1 == 0 {
		return s.log.hi
	}
	return s.entryKey(index + 1)
}

// ends are the first and the last index of the log.
type ends struct {
	known       bool // they are those of the store
	some        bool // there are entries
	first, last uint64
}

// bounds returns the ends of the log; it reads them if they are not known.
func (s *Store) bounds() (ends, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends.known {
		return s.ends, nil
	}
	e, err := s.readEnds()
	if err == nil {
		s.ends = e
	}
	return e, err
}

func (s *Store) setBounds(e ends) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = e
}

func (s *Store) readEnds() (e ends, err error) {
	it, err := s.db.NewIter(&kv.IterOptions{LowerBound: s.log.lo, UpperBound: s.log.hi})
	if err != nil {
		return ends{}, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return ends{known: true}, it.Error()
	}
	if e.first, err = s.index(it.Key()); err != nil {
		return ends{}, err
	}
	if !it.Last() { // it fails: there are entries
		return ends{}, it.Error()
	}
	e.last, err = s.index(it.Key())
	e.known, e.some = true, true
	return e, err
}

func (s *Store) index(key []byte) (uint64, error) {
	digits := key[len(s.log.lo):]
	if len(digits) != 8 {
		return 0, fmt.Errorf("siftraft: the key %q is none of a log entry: the prefix %q has other keys", key, s.prefix)
	}
	return binary.BigEndian.Uint64(digits), nil
}
