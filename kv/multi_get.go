package kv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
)

// MultiGet looks many keys up, as of one moment: values[i] is a copy of the value of
// keys[i], empty and not nil if the value is, and nil if there is no such key. It
// finds what Get finds, in less time than a Get for each key: see docs/readpath.md.
// Keys may come in any order and more than once. Blocks that have to be read are read
// by several goroutines, at most GOMAXPROCS.
//
// With an error, which is that of the first of keys that has one, values is nil. Short
// values share memory, up to 64 KiB of it: who keeps one of them keeps that.
func (d *DB) MultiGet(keys [][]byte) (values [][]byte, err error) {
	return d.multiGet(keys, base.MaxSeqNum)
}

// MultiGet is DB.MultiGet as of the snapshot.
func (s *Snapshot) MultiGet(keys [][]byte) (values [][]byte, err error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if s.pinned != nil {
		return s.multiGetPinned(keys)
	}
	values, err = s.db.multiGet(keys, s.seq)
	if s.closed.Load() { // meanwhile, as in AppendGet
		return nil, ErrClosed
	}
	return values, err
}

// MultiGet is DB.MultiGet for what the transaction reads: the store as it was when it
// began, and its own writes.
func (t *Tx) MultiGet(keys [][]byte) (values [][]byte, err error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	values = make([][]byte, len(keys))
	var rest [][]byte
	var places []int // in keys
	for i, key := range keys {
		value, found, written, err := t.writes.get(key)
		if err != nil {
			return nil, err
		}
		if found {
			values[i] = append([]byte{}, value...)
		}
		if written {
			continue
		}
		if t.writable {
			if err := t.reads.addKey(key); err != nil {
				return nil, err
			}
		}
		rest, places = append(rest, key), append(places, i)
	}
	var got [][]byte
	if t.pinned != nil {
		got, err = t.pinned.multiGetPinned(rest)
	} else {
		got, err = t.db.multiGet(rest, t.seq)
	}
	if err != nil {
		return nil, err
	}
	for i, value := range got {
		values[places[i]] = value
	}
	return values, nil
}

// multiGetPinned is multiGet in the snapshot's state.
func (s *Snapshot) multiGetPinned(keys [][]byte) ([][]byte, error) {
	if !s.join() {
		return nil, ErrClosed
	}
	defer s.db.release(s.pinned, s.stripe)
	return s.db.multiGetIn(s.pinned, s.stripe, keys, s.seq)
}

// multiGet looks keys up as of at, or of the present if at is MaxSeqNum.
func (d *DB) multiGet(keys [][]byte, at base.SeqNum) ([][]byte, error) {
	n := 0
	if len(keys) > 0 {
		n = int(filterpolicy.Hash(keys[0])>>32) & (numStripes - 1)
	}
	s := d.acquire(n)
	if s == nil {
		return nil, ErrClosed
	}
	defer d.release(s, n)
	if at == base.MaxSeqNum {
		at = min(d.seq(), s.limit) // after acquire, as in get
	}
	return d.multiGetIn(s, n, keys, at)
}

// multiGetIn looks keys up in a state that the caller has acquired.
func (d *DB) multiGetIn(s *readState, stripe int, keys [][]byte, at base.SeqNum) ([][]byte, error) {
	m := multiGets.Get().(*multiGet)
	defer m.giveBack()
	m.d, m.s, m.stripe, m.at = d, s, &d.counters.stripes[stripe], at
	m.stripe.gets.Add(uint64(len(keys)))
	m.sort(keys)
	values := make([][]byte, len(keys))
	failed, failure := len(keys), error(nil)
	for from := 0; from < len(keys); from += multiGetRun {
		m.run(keys, from, min(from+multiGetRun, len(keys)))
		for i := range m.keys {
			if k := &m.keys[i]; k.err != nil && k.place < failed {
				failed, failure = k.place, k.err
			}
		}
		if failure == nil {
			m.copyValues(values)
		}
	}
	if failure != nil {
		return nil, failure
	}
	if t := d.tracer.Load(); t != nil {
		t.noteAll(keys, values)
	}
	return values, nil
}

// multiGetRun is how many keys are looked up together: enough that almost every block
// is fetched once, few enough that what is kept for each stays small.
const multiGetRun = 1024

// A multiGet is a lookup of many keys. They go through the places of the store in the
// order in which a lookup of one does, all at each place before any goes to the next.
type multiGet struct {
	d      *DB
	s      *readState
	stripe *stripe
	at     base.SeqNum

	order []keyPlace  // of keys that are too many for one run
	keys  []multiKey  // of the run
	open  []*multiKey // no answer yet
	here  []*multiKey // of them, those that the files looked into may have

	located []keyInFile       // of here, those that a block may have
	wants   []*sstable.Lookup // of located
	unread  []blockWants
	buffers [][]byte // what is found in tables until it is copied, one for each goroutine
}

// A multiKey is one of the keys: a lookup of it, and where it is in its present file.
type multiKey struct {
	lookup
	want   sstable.Lookup
	place  int             // in the caller's keys
	reader *sstable.Reader // of the file where it is looked for
	file   int             // the position of that in its run
	err    error
	done   bool
}

// A keyPlace is the place of a key among the caller's.
type keyPlace struct {
	prefix uint64 // its first eight bytes
	place  int
}

var multiGets = sync.Pool{New: func() any { return new(multiGet) }}

// giveBack returns m to the pool. It refers to nothing of the store any more.
func (m *multiGet) giveBack() {
	clear(m.keys)
	clear(m.open[:cap(m.open)])
	clear(m.here[:cap(m.here)])
	clear(m.located[:cap(m.located)])
	clear(m.wants[:cap(m.wants)])
	clear(m.unread[:cap(m.unread)])
	if len(m.order) > multiGetRun {
		m.order = nil
	}
	for i, b := range m.buffers {
		if cap(b) > maxRetainedScratch {
			m.buffers[i] = nil
		}
	}
	*m = multiGet{order: m.order[:0], keys: m.keys[:0], open: m.open[:0], here: m.here[:0],
		located: m.located[:0], wants: m.wants[:0], unread: m.unread[:0], buffers: m.buffers}
	multiGets.Put(m)
}

// sort finds the order of keys that are too many for one run, so that those of one
// block are mostly in one run.
func (m *multiGet) sort(keys [][]byte) {
	if len(keys) <= multiGetRun {
		return
	}
	for i, key := range keys {
		var b [8]byte
		copy(b[:], key)
		m.order = append(m.order, keyPlace{binary.BigEndian.Uint64(b[:]), i})
	}
	slices.SortFunc(m.order, func(a, b keyPlace) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(keys[a.place], keys[b.place])
	})
}

// run looks those of the keys up that are in the given places of the order.
func (m *multiGet) run(keys [][]byte, from, to int) {
	m.keys = slices.Grow(m.keys[:0], to-from)[:to-from]
	clear(m.keys)
	m.open = m.open[:0]
	for i := range m.buffers {
		m.buffers[i] = m.buffers[i][:0]
	}
	for i := range m.keys {
		k := &m.keys[i]
		if k.place = from + i; len(m.order) > 0 {
			k.place = m.order[k.place].place
		}
		k.d, k.stripe, k.at, k.lookup.want = m.d, m.stripe, m.at, true
		k.key = keys[k.place]
		k.hash = filterpolicy.Hash(k.key)
		k.want.Key, k.want.Hash, k.want.At = k.key, k.hash, m.at
		m.open = append(m.open, k)
	}
	if m.s.hasTombstones() {
		m.each(func(k *multiKey) { k.cover, k.err = m.s.tombstoneCover(m.d, k.key, m.at) })
	}
	m.memtable(m.s.mem)
	for _, imm := range m.s.imms {
		m.memtable(imm)
	}
	m.tables()
	for i := range m.keys {
		k := &m.keys[i]
		if k.chain.begun {
			k.found, k.err = k.combine(m.s, k.err)
		}
	}
}

// each calls f for every open key, and closes those that have an answer or an error
// then.
func (m *multiGet) each(f func(k *multiKey)) {
	left := m.open[:0]
	for _, k := range m.open {
		f(k)
		if k.done = k.done || k.err != nil; !k.done {
			left = append(left, k)
		}
	}
	m.open = left
}

func (m *multiGet) memtable(t *memTable) {
	if t.HasPoints() {
		m.each(func(k *multiKey) { k.done = k.memtable(t, "") })
	}
}

// sharedValues is how many bytes of values share memory at most.
const sharedValues = 64 << 10

// copyValues puts copies of the values that were found in their places.
func (m *multiGet) copyValues(values [][]byte) {
	left := 0 // bytes of short values still to be copied
	for i := range m.keys {
		if k := &m.keys[i]; k.found && len(k.value) <= sharedValues/8 {
			left += len(k.value)
		}
	}
	shared := []byte{}
	for i := range m.keys {
		k := &m.keys[i]
		n := len(k.value)
		switch {
		case !k.found:
		case n > sharedValues/8:
			values[k.place] = bytes.Clone(k.value)
		default:
			if n > cap(shared)-len(shared) {
				shared = make([]byte, 0, min(left, sharedValues))
			}
			left -= n
			shared = append(shared, k.value...)
			values[k.place] = shared[len(shared)-n : len(shared) : len(shared)]
		}
	}
}
