package kv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// MultiGet looks many keys up, as of one moment. Values[i] is a copy of the value of keys[i], not nil if the value is
// empty, and nil if there is no such key. It finds what Get finds, in less time than a Get for each key: see
// docs/readpath.md. Keys may come in any order and more than once. A device reads the blocks side by side: up to 32
// goroutines wait for them if the system does not read ahead. Hundreds of blocks that the system has in memory are
// read by up to GOMAXPROCS goroutines. From an object store blocks of several files are fetched side by side, for
// fewer than two times the requests of Gets, whatever filters let pass.
//
// With an error values is nil. An error of a key is a *ValueError, of the first such key.
// Short values share memory, up to 64 KiB of it: to keep one of them keeps that.
func (d *DB) MultiGet(keys [][]byte) (values [][]byte, err error) {
	return d.present.multiGet(keys)
}

// MultiGet is DB.MultiGet as of the snapshot.
func (s *Snapshot) MultiGet(keys [][]byte) (values [][]byte, err error) {
	return s.view.multiGet(keys)
}

// multiGet looks keys up in the view, without a transaction's own writes.
func (v *readView) multiGet(keys [][]byte) ([][]byte, error) {
	s, stripe, at := v.enter(counters.OwnStripe())
	if s == nil {
		return nil, v.refused()
	}
	defer s.release(stripe)
	values, err := v.d.multiGetIn(s, stripe, keys, at)
	if v.ended() {
		return nil, ErrClosed
	}
	return values, err
}

// multiGetIn looks keys up in a state that the caller has acquired.
func (d *DB) multiGetIn(s *readState, stripe int, keys [][]byte, at base.SeqNum) ([][]byte, error) {
	values := make([][]byte, len(keys))
	counters := &d.counters.Stripes[stripe]
	counters.Gets.Add(uint64(len(keys)))
	var err error
	if len(keys) < minTogether && (!d.tables.Far || len(keys) < 2) {
		err = d.getEach(s, counters, values, keys, at)
	} else {
		err = d.multiGetOf(s, counters, values, keys, at)
	}
	if err != nil {
		return nil, err
	}
	d.watch.TraceMany(keys, values)
	return values, nil
}

// minTogether is the number of keys at which to look them up together is faster than one
// after the other, where no read is a request.
const minTogether = 4

// getEach looks one key up after the other.
func (d *DB) getEach(s *readState, counters *counters.Stripe, values, keys [][]byte, at base.SeqNum) error {
	first := d.firstSampled(counters)
	for i, key := range keys {
		l := lookup{d: d, key: key, hash: filterpolicy.Hash(key), at: at, want: true, stripe: counters}
		l.sampled = i%sampledOneIn == first
		ok, err := l.run(s)
		if err != nil {
			return base.WithKey(key, err)
		}
		if ok {
			l.copyValue(0)
			values[i] = l.dst
		}
		d.watch.SampleKey(key, l.hash, ok)
	}
	return nil
}

// multiGetOf looks all keys up together, as far as they make one run.
func (d *DB) multiGetOf(s *readState, counters *counters.Stripe, values, keys [][]byte, at base.SeqNum) error {
	m := multiGets.Get().(*multiGet)
	defer m.giveBack(len(keys))
	m.d, m.s, m.stripe, m.at, m.first = d, s, counters, at, d.firstSampled(counters)
	m.sort(keys)
	failed, failure := len(keys), error(nil)
	for from := 0; from < len(keys); from += multiGetRun {
		m.run(keys, from, min(from+multiGetRun, len(keys)))
		for i := range m.keys {
			if k := &m.keys[i]; k.err != nil && k.place < failed {
				failed, failure = k.place, base.WithKey(k.key, k.err)
			}
		}
		if failure == nil {
			m.copyValues(values)
			for i := range m.keys {
				k := &m.keys[i]
				d.watch.SampleKey(k.key, k.hash, values[k.place] != nil)
			}
		}
	}
	return failure
}

// multiGetRun is how many keys are looked up together: enough that almost every block
// is fetched once, few enough to need little memory.
const multiGetRun = 1024

// A multiGet is a lookup of many keys. They go through memtables and tables in the
// order of a single lookup, all of them through each before any goes to the next.
type multiGet struct {
	d      *DB
	s      *readState
	stripe *counters.Stripe
	at     base.SeqNum
	first  int  // of the keys, the first that is sampled; those come every sampledOneIn
	failed bool // a key in open has an error

	order   []keyPlace       // of keys that are too many for one run
	keys    []multiKey       // of the run
	lookups []sstable.Lookup // of keys
	open    []*multiKey      // no answer yet
	here    []*multiKey      // of them, those that the files looked into may have

	located []keyInFile       // of here, those that a block may have
	wants   []*sstable.Lookup // of located
	unread  []blockWants
	leaves  *leavesAhead
	readers []*blockReader // of the caller, and of other goroutines

	blobs values.ReadBatch // of keys that have a handle

	farKeys  []farKey
	farRound []*farFile
	farFiles []farFile // those that farFile returned last
}

// A multiKey is one of the keys: a lookup of it, and where it is in its present file.
type multiKey struct {
	lookup
	want   *sstable.Lookup // nil: no table's filter has admitted it yet
	place  int             // in the caller's keys
	table  *version.Table  // where it is looked for
	reader *sstable.Reader // of table
	file   int             // the position of that in its run
	filter sstable.FilterVerdict
	err    error
	done   bool
	apart  *blob.Handle // of the value, which must be read; nil: there is none
	owned  bool         // it was read, into memory that nothing else refers to
}

// hasOwn reports whether the value needs no copy.
func (k *multiKey) hasOwn() bool { return k.owned && !k.chain.begun }

// A keyPlace is the place of a key among the caller's.
type keyPlace struct {
	prefix uint64 // its first eight bytes
	place  int
}

var multiGets = sync.Pool{New: func() any { return newMultiGet() }}

func newMultiGet() *multiGet { return &multiGet{leaves: newLeavesAhead()} }

// giveBack returns m to the pool, after n keys. It refers to nothing of the store any more.
func (m *multiGet) giveBack(n int) {
	n = min(n, multiGetRun) // what may have been written to
	clear(m.keys)
	clear(m.lookups)
	m.open, m.here = cleared(m.open, n), cleared(m.here, n)
	m.located, m.wants, m.unread = cleared(m.located, n), cleared(m.wants, n), cleared(m.unread, n)
	if cap(m.blobs.Reads) > multiGetRun {
		m.blobs = values.ReadBatch{}
	}
	if len(m.order) > multiGetRun {
		m.order = nil
	}
	if m.d.tables.Far { // else nothing of them was used, and they may be a hundred KiB
		clear(m.farKeys[:cap(m.farKeys)])
		clear(m.farFiles)
		clear(m.farRound[:cap(m.farRound)])
	}
	for _, r := range m.readers {
		r.own = nil
		if cap(r.buffer) > maxRetainedScratch {
			r.buffer = nil
		}
	}
	*m = multiGet{order: m.order[:0], keys: m.keys[:0], lookups: m.lookups[:0], open: m.open, here: m.here,
		located: m.located, wants: m.wants, blobs: m.blobs, unread: m.unread, leaves: m.leaves, readers: m.readers,
		farKeys: m.farKeys[:0], farRound: m.farRound[:0], farFiles: m.farFiles[:0]}
	multiGets.Put(m)
}

// cleared returns s, empty, after up to n elements of its memory were used.
func cleared[T any](s []T, n int) []T {
	clear(s[:min(n, cap(s))])
	return s[:0]
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

// run looks up the keys in the given positions of the order.
func (m *multiGet) run(keys [][]byte, from, to int) {
	clear(m.keys) // of the run before; the rest is as it is made, or as giveBack left it
	m.keys = slices.Grow(m.keys[:0], to-from)[:to-from]
	clear(m.lookups)
	m.lookups = slices.Grow(m.lookups[:0], to-from)
	m.open = m.open[:0]
	for _, r := range m.readers {
		r.buffer = r.buffer[:0]
	}
	for i := range m.keys {
		k := &m.keys[i]
		if k.place = from + i; len(m.order) > 0 {
			k.place = m.order[k.place].place
		}
		k.d, k.stripe, k.at, k.lookup.want = m.d, m.stripe, m.at, true
		k.version = m.s.version
		k.sampled = k.place%sampledOneIn == m.first
		k.key = keys[k.place]
		k.hash = filterpolicy.Hash(k.key)
		m.open = append(m.open, k)
	}
	if m.s.hasTombstones() {
		m.each(func(k *multiKey) { k.cover, k.err = m.s.tombstoneCover(m.d, k.key, m.at) })
	}
	m.memtable(m.s.mem)
	for _, imm := range m.s.imms {
		m.memtable(imm)
	}
	if m.d.tables.Far {
		m.farTables()
	} else {
		m.tables()
	}
	m.readApart()
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
	switch {
	case !t.HasPoints():
	case t.HoldsAny():
		m.each(func(k *multiKey) { k.done = k.memtableApart(t) })
	default:
		m.each(func(k *multiKey) { k.done = k.memtable(t, "") })
	}
}

// sharedValues is how many bytes of values share memory at most.
const sharedValues = 64 << 10

// copyValues puts copies of the values that were found in their places.
func (m *multiGet) copyValues(values [][]byte) {
	left := 0 // bytes of short values still to be copied
	for i := range m.keys {
		if k := &m.keys[i]; k.found && !k.hasOwn() && len(k.value) <= sharedValues/8 {
			left += len(k.value)
		}
	}
	shared := []byte{}
	for i := range m.keys {
		k := &m.keys[i]
		n := len(k.value)
		switch {
		case !k.found:
		case k.hasOwn():
			values[k.place] = k.value
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
