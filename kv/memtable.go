package kv

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A memTable holds the newest writes: points in a skiplist, range tombstones in
// a list beside it.
type memTable struct {
	points *memtable.Memtable
	tombs  atomic.Pointer[tombstoneList]
	log    uint64 // the WAL that has its writes
}

// A tombstoneList is an immutable list, and the set made of it when somebody
// first asks.
type tombstoneList struct {
	list []rangedel.Tombstone
	once sync.Once
	set  *rangedel.Set
}

func (l *tombstoneList) get() *rangedel.Set {
	l.once.Do(func() { l.set = rangedel.NewSet(l.list) })
	return l.set
}

func newMemTable(size int64, log uint64) *memTable {
	return &memTable{points: memtable.New(int(size)), log: log}
}

// tombstones returns the range tombstones; nil if there are none.
func (m *memTable) tombstones() *rangedel.Set {
	l := m.tombs.Load()
	if l == nil {
		return nil
	}
	return l.get()
}

// maxTombstones is how many range tombstones a memtable takes before it is
// flushed. A lookup behind a range delete cuts all of them into fragments anew, so
// many in one memtable would make reads slow.
const maxTombstones = 1024

// crowded reports whether the memtable takes no more range tombstones.
func (m *memTable) crowded() bool {
	l := m.tombs.Load()
	return l != nil && len(l.list) >= maxTombstones
}

func (m *memTable) empty() bool { return m.points.Empty() && m.tombs.Load() == nil }

// reserve sets room aside for a batch's points.
func (m *memTable) reserve(n int) bool { return n == 0 || m.points.Reserve(n) }

// apply adds the entries of a batch. Batches may be applied concurrently, but
// of those with range tombstones one at a time.
func (m *memTable) apply(record []byte) error {
	r, err := readBatch(record)
	if err != nil {
		return err
	}
	for {
		e, ok, err := r.next()
		if err != nil || !ok {
			return err
		}
		if e.key.Kind() == base.KindRangeDelete {
			err = m.addTombstone(e)
		} else {
			err = m.points.Add(e.key, e.value)
		}
		if err != nil {
			return err
		}
	}
}

func (m *memTable) addTombstone(e batchEntry) error {
	k := e.key.Clone()
	end, err := rangedel.DecodeEnd(append([]byte(nil), e.value...))
	if err != nil {
		return err
	}
	var list []rangedel.Tombstone
	if l := m.tombs.Load(); l != nil {
		list = l.list
	}
	// Readers of the old list see only its length: appending behind it is safe.
	list = append(list, rangedel.Tombstone{Start: k.User, End: end, Seq: k.SeqNum()})
	m.tombs.Store(&tombstoneList{list: list})
	return nil
}

// errMemtableFull is an accounting error: the commit path reserves room first.
var errMemtableFull = errors.New("siftkv: memtable is full although room was reserved")
