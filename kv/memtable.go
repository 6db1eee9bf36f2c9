package kv

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A memTable holds the newest writes: points in a skiplist, range tombstones in
// a list beside it.
type memTable struct {
	points *memtable.Memtable
	tombs  atomic.Pointer[tombstoneList]
	log    uint64 // the WAL that has its writes

	// lastSeq is the newest write in it, once it takes no more; 0: not known.
	lastSeq atomic.Uint64
}

// A tombstoneList is an immutable list, and the set made of it when somebody
// first asks.
type tombstoneList struct {
	list []rangedel.Tombstone
	kept int // what keepNewest had left of the list
	once sync.Once
	set  *rangedel.Set
}

func (l *tombstoneList) get() *rangedel.Set {
	l.once.Do(func() { l.set = rangedel.NewSet(l.list) })
	return l.set
}

// newMemTable returns a memtable with arena bytes for points.
func newMemTable(arena int64, log uint64) *memTable {
	return &memTable{points: memtable.New(int(arena)), log: log}
}

// memtableArena is the arena of a memtable that takes MemtableSize with its index.
func (o *Options) memtableArena() int64 {
	return int64(memtable.CapacityWithin(int(o.MemtableSize)))
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
// flushed. A lookup behind a range delete cuts all of them into fragments anew, and
// a fragment lists all that cover it: the cost grows with the square where they are
// nested.
const maxTombstones = 128

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
	r, err := batchrepr.NewReader(record)
	if err != nil {
		return err
	}
	return m.applyEntries(r)
}

// applyEntries adds the entries that are left in r, on apply's terms.
func (m *memTable) applyEntries(r batchrepr.Reader) error {
	var tombs []rangedel.Tombstone
	for {
		e, ok, err := r.Next()
		if err != nil {
			return err
		}
		if !ok {
			m.addTombstones(tombs)
			return nil
		}
		if e.Key.Kind() != base.KindRangeDelete {
			if err := m.points.Add(e.Key, filterpolicy.Hash(e.Key.User), e.Value); err != nil {
				return err
			}
			continue
		}
		k := e.Key.Clone()
		end, err := rangedel.DecodeEnd(append([]byte(nil), e.Value...))
		if err != nil {
			return err
		}
		tombs = append(tombs, rangedel.Tombstone{Start: k.User, End: end, Seq: k.SeqNum()})
	}
}

// addTombstones adds those of one batch. No reader stands between the writes of a
// batch, so the newest over each key is all that counts.
func (m *memTable) addTombstones(tombs []rangedel.Tombstone) {
	if len(tombs) == 0 {
		return
	}
	var before tombstoneList
	if l := m.tombs.Load(); l != nil {
		before.list, before.kept = l.list, l.kept
	}
	// Readers of the old list see only its length: appending behind it is safe.
	m.tombs.Store(&tombstoneList{list: append(before.list, rangedel.Newest(tombs)...), kept: before.kept})
}

// keepNewest drops what newer range tombstones cover. It is for a memtable that nobody
// reads as it was before its last write.
func (m *memTable) keepNewest() {
	if l := m.tombs.Load(); l != nil {
		list := rangedel.Newest(l.list)
		m.tombs.Store(&tombstoneList{list: list, kept: len(list)})
	}
}

// doubled reports whether there are many range tombstones, and twice as many as keepNewest
// left the last time.
func (m *memTable) doubled() bool {
	l := m.tombs.Load()
	return l != nil && len(l.list) >= max(maxTombstones, 2*l.kept)
}

// errMemtableFull is an accounting error: the commit path reserves room first.
var errMemtableFull = errors.New("siftkv: memtable is full although room was reserved")
