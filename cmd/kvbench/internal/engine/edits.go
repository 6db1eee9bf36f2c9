package engine

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"go.etcd.io/bbolt"
)

// A RangeDeleter is a live store that deletes a range of keys by one write.
type RangeDeleter interface {
	// DeleteRange deletes the keys from start on that are less than end. It does not keep
	// the slices.
	DeleteRange(start, end []byte) error
}

// An Adder is a live store that adds to a counter without looking it up, if
// Settings.Counters is set. Counters are values of 8 bytes, little-endian.
type Adder interface {
	// Add adds a counter to that of a key, which is 0 if the key is not there. It does
	// not keep the slices.
	Add(key, counter []byte) error
}

// Delete deletes one key.
func (s *SiftKV) Delete(key []byte) error { return failed("siftkv: delete", s.db.Delete(key, s.sets)) }

// DeleteRange implements RangeDeleter.
func (s *SiftKV) DeleteRange(start, end []byte) error {
	return failed("siftkv: delete range", s.db.DeleteRange(start, end, s.sets))
}

// Add implements Adder.
func (s *SiftKV) Add(key, counter []byte) error {
	return failed("siftkv: merge", s.db.Merge(key, counter, s.sets))
}

// Delete deletes one key.
func (p *Pebble) Delete(key []byte) error { return failed("pebble: delete", p.db.Delete(key, p.sets)) }

// DeleteRange implements RangeDeleter.
func (p *Pebble) DeleteRange(start, end []byte) error {
	return failed("pebble: delete range", p.db.DeleteRange(start, end, p.sets))
}

// Add implements Adder.
func (p *Pebble) Add(key, counter []byte) error {
	return failed("pebble: merge", p.db.Merge(key, counter, p.sets))
}

// pebbleCounters64 adds counters up, in whatever order they come.
var pebbleCounters64 = &pebble.Merger{
	Name: "kvbench.counters",
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		s := &pebbleSum{}
		return s, s.MergeNewer(value)
	},
}

// pebbleSum is a counter that is added up.
type pebbleSum struct{ sum uint64 }

func (s *pebbleSum) MergeNewer(value []byte) error {
	if len(value) != 8 {
		return fmt.Errorf("a counter of %d bytes", len(value))
	}
	s.sum += binary.LittleEndian.Uint64(value)
	return nil
}

func (s *pebbleSum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *pebbleSum) Finish(bool) ([]byte, io.Closer, error) {
	return binary.LittleEndian.AppendUint64(nil, s.sum), nil, nil
}

func (b *badgerStore) Delete(key []byte) error {
	return failed("badger: delete", b.db.Update(func(tx *badger.Txn) error { return tx.Delete(key) }))
}

func (l *goLevelDB) Delete(key []byte) error {
	return failed("goleveldb: delete", l.db.Delete(key, l.sets))
}

func (b *bolt) Delete(key []byte) error {
	return failed("bbolt: delete", b.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Delete(key) }))
}
