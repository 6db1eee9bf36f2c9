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
	"github.com/siftkv/siftkv/internal/multiget"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
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
		var l lookup // a literal would be made elsewhere, and copied
		l.d, l.key, l.hash, l.at, l.want, l.stripe = d, key, filterpolicy.Hash(key), at, true, counters
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
	defer m.release()
	m.d, m.s, m.stripe, m.first = d, s, counters, d.firstSampled(counters)
	m.search.Version, m.search.Tables, m.search.Levels, m.search.At = s.version, &d.tables, &counters.Levels, at
	m.sort(keys)
	failed, failure := len(keys), error(nil)
	for m.from = 0; m.from < len(keys); m.from += multiGetRun {
		m.run(keys, min(multiGetRun, len(keys)-m.from))
		for i := range m.asked {
			if a := &m.asked[i]; a.Err != nil && m.position(i) < failed {
				failed, failure = m.position(i), base.WithKey(a.Key, a.Err)
			}
		}
		if failure == nil {
			m.copyValues(values)
			m.sample(values)
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
	first  int // of the keys, the first that is sampled; those come every sampledOneIn
	from   int // the position of the run in the order of keys

	order  []keyPosition   // of keys that are too many for one run
	asked  []multiget.Key  // the run
	open   []*multiget.Key // of asked, those that no memtable answers
	keys   []multiKey      // what was found of each of asked, as far as anything was
	found  []*multiKey     // of keys, those in use
	search multiget.Search
	blobs  values.ReadBatch // of keys that have a handle
}

// A multiKey is what was found of one of the keys.
type multiKey struct {
	lookup
	asked    *multiget.Key
	position int         // in the caller's keys
	handle   blob.Handle // of a blob value, which is read when all keys have theirs; zero: the value is none
	owned    bool        // it was read, into memory that nothing else refers to
}

// hasOwn reports whether the value needs no copy.
func (k *multiKey) hasOwn() bool { return k.owned && !k.chain.begun }

// A keyPosition is the position of a key among the caller's.
type keyPosition struct {
	prefix   uint64 // its first eight bytes
	position int
}

var multiGets = sync.Pool{New: func() any {
	m := &multiGet{}
	m.search.Answer = m.answer
	return m
}}

// release returns m to the pool. It refers to nothing of the store any more.
func (m *multiGet) release() {
	m.clear()
	if cap(m.blobs.Reads) > multiGetRun {
		m.blobs = values.ReadBatch{}
	}
	if m.order = m.order[:0]; cap(m.order) > 2*multiGetRun {
		m.order = nil
	}
	m.search.Release()
	m.d, m.s, m.stripe = nil, nil, nil
	multiGets.Put(m)
}

// clear makes m ready for another run.
func (m *multiGet) clear() {
	for _, k := range m.found {
		*k = multiKey{}
	}
	clear(m.found)
	clear(m.asked)
	clear(m.open[:len(m.asked)])
	m.found, m.asked, m.open = m.found[:0], m.asked[:0], m.open[:0]
}

// sort finds the order of keys that are too many for one run, so that those of one block are mostly in one run.
func (m *multiGet) sort(keys [][]byte) {
	if len(keys) <= multiGetRun {
		return
	}
	for i, key := range keys {
		var b [8]byte
		copy(b[:], key)
		m.order = append(m.order, keyPosition{binary.BigEndian.Uint64(b[:]), i})
	}
	slices.SortFunc(m.order, func(a, b keyPosition) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(keys[a.position], keys[b.position])
	})
}

// position returns the position among the caller's keys of one of m.asked.
func (m *multiGet) position(i int) int {
	if len(m.order) > 0 {
		return m.order[m.from+i].position
	}
	return m.from + i
}

// run looks up n keys, from the position m.from of the order.
func (m *multiGet) run(keys [][]byte, n int) {
	m.clear()
	m.asked, m.open = slices.Grow(m.asked, n)[:n], slices.Grow(m.open, n)
	m.keys = slices.Grow(m.keys[:0], n)[:n]
	for i := range m.asked {
		a, at := &m.asked[i], m.position(i)
		a.Key, a.Owner, a.Sampled = keys[at], int32(i), at%sampledOneIn == m.first
		a.Hash = filterpolicy.Hash(a.Key)
	}
	if m.s.hasTombstones() {
		m.each(func(a *multiget.Key) { a.Cover, a.Err = m.s.tombstoneCover(m.d, a.Key, m.search.At) })
	}
	m.memtable(m.s.mem)
	for _, imm := range m.s.imms {
		m.memtable(imm)
	}
	m.each(func(a *multiget.Key) {
		m.open = append(m.open, a)
		if m.d.tables.Far {
			m.keyOf(a) // answer is called by several goroutines
		}
	})
	m.search.Find(m.open)
	m.readValues()
	for _, k := range m.found {
		if k.chain.begun {
			k.found, k.asked.Err = k.combine(m.s, k.asked.Err)
		}
	}
}

// each calls f for every key that has neither an answer nor an error.
func (m *multiGet) each(f func(a *multiget.Key)) {
	for i := range m.asked {
		if a := &m.asked[i]; !a.Done && a.Err == nil {
			f(a)
		}
	}
}

// keyOf returns what was found of a key. Of a key that is nowhere it is never made.
func (m *multiGet) keyOf(a *multiget.Key) *multiKey {
	k := &m.keys[a.Owner]
	if k.asked == nil {
		k.asked, k.position = a, m.position(int(a.Owner))
		k.d, k.stripe, k.version, k.at, k.want = m.d, m.stripe, m.s.version, m.search.At, true
		k.key, k.hash, k.cover, k.sampled, k.stream = a.Key, a.Hash, a.Cover, a.Sampled, &k.handle
		m.found = append(m.found, k)
	}
	return k
}

func (m *multiGet) memtable(t *memTable) {
	if t.HasPoints() {
		m.each(func(a *multiget.Key) { a.Done = m.keyOf(a).memtable(t, "") })
	}
}

// answer takes what a table has of a key, and older operands of the same table. It reports whether the key needs no
// older table.
func (m *multiGet) answer(a *multiget.Key, r *sstable.Reader, found *sstable.Lookup) (done bool, err error) {
	k := m.keyOf(a)
	if found.Trailer.Kind().Separated() {
		return k.answerHandle(found.Value, found.Trailer)
	}
	if k.answer(found.Value, found.Trailer) {
		return true, nil
	}
	return k.olderInTable(r, found.Trailer, &found.Probe)
}

// sample tells the sampler of the keys of the run.
func (m *multiGet) sample(values [][]byte) {
	if m.d.watch.Sampler() == nil {
		return
	}
	for i := range m.asked {
		m.d.watch.SampleKey(m.asked[i].Key, m.asked[i].Hash, values[m.position(i)] != nil)
	}
}
